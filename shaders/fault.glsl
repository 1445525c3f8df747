/* A bad index: the first one since the host last waited is kept, and raised there. Needs operand `fault`. */
void tf_report(uint operation, uvec2 value, int size) {
  if (swap_fault(0, 0u, operation) == 0u) {
    set_word32_fault(1, value.x);
    set_word32_fault(2, value.y);
    set_word32_fault(3, uint(size));
  }
}
