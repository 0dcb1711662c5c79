"""A small copy of LINK's dataset LINT: its rules and the files of values, one row of which people judged otherwise."""

from __future__ import annotations

import json

RULES = {
    "rule2": {
        "premise_map": {
            "is_allergic_to(P, A)": "[P] is allergic to [A]",
            "is_ingredient_in(Z, B)": "[Z] is an ingredient in [B]",
            "is_one_type_of(Z, A)": "[Z] is one type of [A]",
        },
        "conclusion_map": {"is_not_able_to_eat(P, B)": "[P] is not able to eat [B]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Food Allergen", False, None],
            "B": ["B", "Dish", False, None],
            "Z": ["Z", "Ingredient", False, None],
        },
        "domain": "outcomes and effects",
    },
    "rule7": {
        "premise_map": {
            "was_born_in(P, B)": "[P] was born in [B]",
            "was_invented_in(A, Y)": "[A] was invented in [Y]",
            "is_earlier_than(B, Y)": "[B] is earlier than [Y]",
        },
        "conclusion_map": {"could_not_use(P, A)": "[P] could not use [A]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Product", False, None],
            "B": ["B", "Historical Time Period", False, None],
            "Y": ["Y", "Year", False, "factual"],
        },
        "domain": "temporal",
    },
}

FILES = {
    "rule2_value_cache.csv_head": "P,A,Z,B\nPersonX,dairy,butter,mashed_potatoes\nPersonX,dairy,butter,mashed_potatoes\nPersonX,gluten,flour,bread\nPersonX,,x,y\n",
    "rule2_value_cache.csv_longtail": 'P,A,Z,B\nPersonX,dairy,ghee,mysore pak\nPersonX,gluten,seitan,"tofu, fried"\n',
    "rule7_value_cache.csv_head": "P,A,Y,B\nPersonX,tractor,1892,Roman Empire\n",
    "rule7_value_cache.csv_longtail": "P,A,Y,B\nPersonX,theremin,1920,Hittite Empire\n",
    "flip_label_data.json": json.dumps({"LINK": {"rule2": {"head": [1], "longtail": []}}}),
    "rule2_gpt-4_probe_results.json": "{}",
}
