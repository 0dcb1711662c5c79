"""A search spread over several processes, and machines, that ends as a search in one process.

The journal decides a search's result, so all that is spread is answering: `owner.py` is a worker that answers the
requests that are its own and keeps them in its shard, `routing.py` sends each request to its worker, and `running.py`
searches rules ahead so that workers are busy, brings their answers home, and runs the ordinary search on top.
`on_ray.py` is the only file that knows Ray.
"""
