import type { KrmFunction } from '../../model/function.ts';

const DIFFERENCES = [
  'Nothing is downloaded: your own `schema_location` causes a warning, and the built-in schemas are used.',
  'CustomResourceDefinitions in the package, those of nested packages included, are schemas too, with their defaults and CEL rules.',
  'Kptfiles and local-config resources are skipped, as no cluster gets them.',
  'Messages are those of a kube-apiserver, and name the field itself rather than the object around it; values of Secrets are never shown.',
];

/** Most renderings do not need the code for schemas, so it is loaded on first use. */
const validated: KrmFunction['run'] = async (list) => (await import('./validate.ts')).validate(list);

export const kubeconform: KrmFunction = {
  name: 'kubeconform',
  doc: {
    summary: 'Validates resources against the schemas of their kinds.',
    description: [
      'Reports where a resource does not have the form of its kind: fields of a wrong type, missing fields, and with `strict: "true"` fields that the kind does not have. The schemas are those of Kubernetes, and of the CustomResourceDefinitions in the package.',
      'A kind without a schema causes a warning, unless `ignore_missing_schemas` is `"true"`. `skip_kinds` names kinds that are not validated, with commas between them, each as `Deployment` or `apps/v1/Deployment`. All of this is the data of a ConfigMap and optional.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  validators:\n    - image: kubeconform:latest\n      configMap:\n        strict: "true"\n        skip_kinds: MyCustom,example.org/v1/Other\n',
    ],
    differences: [
      ...DIFFERENCES,
      'A kind without a schema is reported by a warning; the published function accepts it without a message.',
    ],
  },
  run: validated,
};

export const kubeval: KrmFunction = {
  name: 'kubeval',
  doc: {
    summary: 'Validates resources against the schemas of their kinds; the former name of kubeconform.',
    description: kubeconform.doc.description,
    examples: [
      'pipeline:\n  validators:\n    - image: kubeval:v0.3.0\n      configMap:\n        strict: "true"\n        ignore_missing_schemas: "true"\n',
    ],
    differences: [
      ...DIFFERENCES,
      'A kind without a schema is reported by a warning; the published function makes it an error.',
      'The schemas are those of a newer Kubernetes, without the kinds of Google Cloud.',
    ],
  },
  run: validated,
};
