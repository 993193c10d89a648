"""Problems and answers: an ask, its language, and the operating point that answers it."""
