import type { KrmFunction } from '../model/function.ts';

export const starlark: KrmFunction = {
  name: 'starlark',
  readsStatus: true,
  doc: {
    summary: 'Runs a script in Starlark, a dialect of Python, that changes or checks the resources.',
    description: [
      'The script is `source` of a StarlarkRun, beside parameters of any shape in `params`; or in `source` of a ConfigMap, beside parameters that are texts. It reads the resources from `ctx.resource_list["items"]` and its configuration in `ctx.resource_list["functionConfig"]`, changes the first in place, and calls `fail("why")` if the package is invalid. Its output goes to stderr.',
      'Every resource has annotations for its place (`config.kubernetes.io/path` and `index`); a script that changes them moves it. Unchanged parts keep their text, comments included.',
      'Beyond the core of the language a script may use sets, recursion, `while`, loops outside of functions, and assign global names again. It may load `krmfn.star`, `encoding/base64.star`, `encoding/json.star`, `encoding/yaml.star`, `hash.star`, `math.star` and `re.star`.',
      'A script is stopped after 10 million steps, after making 256 MiB of values, or when calls are nested more than 400 levels deep.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: gcr.io/kpt-fn/starlark:v0.4.3\n      configPath: set-replicas.yaml\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: set-replicas\n  annotations:\n    config.kubernetes.io/local-config: "true"\nparams:\n  replicas: 3\nsource: |\n  replicas = ctx.resource_list["functionConfig"]["params"]["replicas"]\n  for resource in ctx.resource_list["items"]:\n    if resource["kind"] == "Deployment":\n      resource["spec"]["replicas"] = replicas\n',
    ],
    differences: [
      'Findings that a script puts into `ctx.resource_list["results"]` count; the published function ignores them.',
      '`ctx.environment` is empty and `ctx.open_api` cannot be used, so that a script returns the same on any machine.',
      'The modules bsoup, csv, geo, html, http, time, xlsx and zipfile can be loaded, but fail when they are used.',
      'Texts consist of UTF-16 code units, as in the Java implementation of Starlark, and there are no bytes.',
      '`elems`, `codepoints` and similar methods return lists.',
      'An int has at most 4096 bits.',
      'Comments of changed resources stay; the published function loses all comments.',
    ],
    compared: 'v0.4.3, by `npm run test:go`',
  },
  // The interpreter is large, and most renderings do not need it.
  run: async (list) => (await import('../starlark/run-on-resources.ts')).runOnResources(list),
};
