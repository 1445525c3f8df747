"""Backend `opengl`: compute through any OpenGL 4.3 driver."""
