"""The sections of docs/evidence.md: one file a study, each with a `TITLE` and a `section` made of its figures."""
