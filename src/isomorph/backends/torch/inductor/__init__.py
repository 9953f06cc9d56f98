"""What is done to programs for torch's compiler, Inductor: less memory is held (`recomputing`), its
bugs are repaired (`repairs`), and other processes find its files (`program_files`).
"""
