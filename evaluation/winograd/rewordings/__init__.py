"""Rewordings of Winograd sentences that keep the meaning, and how well methods keep their answers under them."""
