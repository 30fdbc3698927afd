import type { KrmFunction } from '../model/function.ts';

export const starlark: KrmFunction = {
  name: 'starlark',
  readsStatus: true,
  doc: {
    summary: 'Runs a script in Starlark, a dialect of Python, that changes or checks the resources.',
    description: [
      'The script stands in `source` of a StarlarkRun, beside parameters of any shape in `params`; or in `source` of a ConfigMap, beside parameters that are texts. It finds the resources in `ctx.resource_list["items"]` and its configuration in `ctx.resource_list["functionConfig"]`, changes the first in place, and ends with `fail("why")` if the package is not as it must be. What it prints goes to stderr.',
      'Every resource has annotations that say where it stands (`config.kubernetes.io/path` and `index`); a script that changes them moves it. What the script does not change keeps its text, comments included.',
      'Beyond the core of the language a script may use sets, recursion, `while`, loops outside of functions, and give new values to global names. It may load `krmfn.star`, `encoding/base64.star`, `encoding/json.star`, `encoding/yaml.star`, `hash.star`, `math.star` and `re.star`.',
      'A script is stopped after 10 million steps, after making 256 MiB of values, or when its calls nest more than 400 deep.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: gcr.io/kpt-fn/starlark:v0.4.3\n      configPath: set-replicas.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: set-replicas\n  annotations:\n    config.kubernetes.io/local-config: "true"\nparams:\n  replicas: 3\nsource: |\n  replicas = ctx.resource_list["functionConfig"]["params"]["replicas"]\n  for resource in ctx.resource_list["items"]:\n    if resource["kind"] == "Deployment":\n      resource["spec"]["replicas"] = replicas\n',
    ],
    differences: [
      'Findings that a script puts into `ctx.resource_list["results"]` count; the published function ignores them.',
      '`ctx.environment` is empty and `ctx.open_api` cannot be used, so that a script gives the same wherever it runs.',
      'The modules bsoup, csv, geo, html, http, time, xlsx and zipfile can be loaded, but fail when they are used.',
      'Texts are made of UTF-16 code units, as in the Java implementation of Starlark, and there are no bytes.',
      '`elems`, `codepoints` and their like give lists.',
      'An int has at most 4096 bits.',
      'Comments of what a script changes stay; the published function loses all comments.',
    ],
    compared: 'v0.4.3, by `npm run test:go`',
  },
  // The interpreter is large, and most renderings go without it.
  run: async (list) => (await import('../starlark/run-on-resources.ts')).runOnResources(list),
};
