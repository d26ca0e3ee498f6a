"""All targets, by name."""

from typing import Dict

from . import bulk_targets, checkpoint_targets, component_targets, folder_targets, text_targets
from .target import Target

TARGETS: Dict[str, Target] = {
    "native": checkpoint_targets.native,
    "allennlp": checkpoint_targets.allennlp,
    "elmo": component_targets.elmo,
    "elmo_lm": component_targets.elmo_lm,
    "elmo_senses": component_targets.elmo_senses,
    "elmo_coref": component_targets.elmo_coref,
    "elmo_entailment": component_targets.elmo_entailment,
    "elmo_qa": component_targets.elmo_qa,
    "elmo_srl": component_targets.elmo_srl,
    "search_index": folder_targets.search_index,
    "activation_store": folder_targets.activation_store,
    "vectors": folder_targets.vectors,
    "pretraining_config": folder_targets.pretraining_config,
    "task_config": folder_targets.task_config,
    "run_folder": folder_targets.run_folder,
    "text": text_targets.text,
    "docs": text_targets.docs,
    "sense_text": text_targets.sense_text,
    "wordnet": text_targets.wordnet,
    **text_targets.DATA_TARGETS,
    **bulk_targets.TARGETS,
}
