"""Operations that join several rooms, with their results; web pages, and tools for agents and editors."""
