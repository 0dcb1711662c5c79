"""A search whose models answer in several processes, and on several machines; its result is that of one process.

`spreading.py` sends the requests of models to workers. `on_ray.py` is the only file that knows Ray.
"""
