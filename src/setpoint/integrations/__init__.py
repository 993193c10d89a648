"""Doors into other people's training loops; each optional package is imported in one file, and only when asked for."""
