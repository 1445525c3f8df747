/* The instruction sets that this build has, and which one the process uses. */
int tf_isa_count(void);
const char *tf_isa_name(int k);
int tf_isa_supported(int k);
int tf_isa_chosen(void);
int tf_isa_choose(const char *wanted);
const void *tf_isa_table(const char *name);
