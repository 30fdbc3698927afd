import { describe, expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { skipFor } from '../../../test/support/skip.ts';
import type { ResourceList } from '../model/function.ts';
import { readResources } from '../resource/read-resources.ts';
import { starlark } from './starlark.ts';
import { runFunction } from './support/testing.ts';

const script = (source: string, more = '') =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: test\n${more}source: |\n${source.replace(/^/gm, '  ')}\n`;

const web = `# The site.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # shown to people
spec:
  replicas: 1   # few
  template:
    spec:
      containers:
        # first
        - name: app
          image: "app:1"
          mode: 0644
        - name: proxy # second
          ratio: 1.0
          serial: 9007199254740993
`;

const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  yes: "yes"
`;

const files = { 'web.yaml': web, 'settings.yaml': settings };

describe('what a script changes', () => {
  test('is changed in the text, and nothing else', async () => {
    const source = `for resource in ctx.resource_list["items"]:
  if resource["kind"] == "Deployment":
    resource["spec"]["replicas"] = 5
    resource["metadata"]["annotations"]["owner"] = "sea"
    containers = resource["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = containers[0]["image"].replace("1", "2")
    containers.append({"name": "log", "tty": True, "level": 2.5, "tag": "1", "none": None})`;
    const { files: changed, results } = await runFunction(starlark, files, script(source));
    expect(results).toEqual([]);
    expect(changed).toEqual({
      'settings.yaml': settings,
      'web.yaml': web
        .replace('# shown to people\n', '# shown to people\n  annotations:\n    owner: sea\n')
        .replace('replicas: 1 ', 'replicas: 5 ')
        .replace('app:1', 'app:2')
        .concat(
          '        - name: log\n          tty: true\n          level: 2.5\n          tag: "1"\n          none: null\n',
        ),
    });
  });

  test('is nothing if it creates the same again', async () => {
    const source = `def copy(x):
  if type(x) == "dict": return {k: copy(v) for k, v in x.items()}
  if type(x) == "list": return [copy(v) for v in x]
  return x
ctx.resource_list["items"] = [copy(x) for x in ctx.resource_list["items"]]`;
    expect((await runFunction(starlark, files, script(source))).files).toEqual(files);
  });

  test('may be which resources there are, and where', async () => {
    const source = `items = ctx.resource_list["items"]
items.pop(0)
items[0]["metadata"]["annotations"]["config.kubernetes.io/path"] = "moved/settings.yaml"
items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sea"}, "data": {"10": "a", "9": "b"}})`;
    expect((await runFunction(starlark, files, script(source))).files).toEqual({
      'moved/settings.yaml': settings,
      '': 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: sea\ndata:\n  "10": a\n  "9": b\n',
    });
  });

  test('may be named as parts of every object are in JavaScript', async () => {
    const source = `item = ctx.resource_list["items"][0]
item["data"] = {"__proto__": {"constructor": "x"}, "toString": 1}
item["more"] = [1 << 70, (1, 2), set(["a"]), range(2)]`;
    expect((await runFunction(starlark, { 'a.yaml': settings }, script(source))).files).toEqual({
      'a.yaml': `${settings.slice(0, settings.indexOf('data:\n  yes'))}data:
  __proto__:
    constructor: x
  toString: 1
more:
  - 1180591620717411303424
  - - 1
    - 2
  - - a
  - - 0
    - 1
`,
    });
  });

  test('does not count if the script fails', async () => {
    const source = 'ctx.resource_list["items"][0]["spec"]["replicas"] = 9\nfail("no", 1)';
    const run = await runFunction(starlark, files, script(source));
    expect(run.files).toEqual(files);
    expect(run.messages).toEqual(['error: fail: no 1']);
  });
});

describe('what a script reads', () => {
  test('is typed as Kubernetes reads it', async () => {
    const source = `spec = ctx.resource_list["items"][0]["spec"]
print(spec["template"]["spec"]["containers"], ctx.resource_list["items"][1]["data"])
print(ctx.resource_list["kind"], ctx.resource_list["apiVersion"], ctx.environment, dir(ctx))`;
    expect((await runFunction(starlark, files, script(source))).stderr?.split('\n')).toEqual([
      '[{"name": "app", "image": "app:1", "mode": 420}, {"name": "proxy", "ratio": 1.0, "serial": 9007199254740993}] {"yes": "yes"}',
      'ResourceList config.kubernetes.io/v1 {} ["environment", "resource_list"]',
      '',
    ]);
  });

  test('has its configuration and the places of the resources', async () => {
    const source = `print(ctx.resource_list["functionConfig"]["params"])
print(ctx.resource_list["items"][0]["metadata"]["annotations"])`;
    const { stderr } = await runFunction(starlark, { 'a.yaml': settings }, script(source, 'params: {a: [1, x]}\n'));
    const [params, annotations] = (stderr ?? '').split('\n');
    expect(params).toBe('{"a": [1, "x"]}');
    expect(annotations).toContain('"config.kubernetes.io/path": "a.yaml"');
    expect(annotations).toContain('"internal.config.kubernetes.io/index": "0"');
  });

  test('may be in a ConfigMap', async () => {
    const source =
      'data = ctx.resource_list["functionConfig"]["data"]\nprint(data["replicas"], type(data["replicas"]))';
    const { stderr } = await runFunction(starlark, files, { replicas: '5', source });
    expect(stderr).toBe('5 string\n');
  });
});

describe('the output of a script', () => {
  test('about the package are findings', async () => {
    const source = `ctx.resource_list["results"] = [{
  "message": "too few",
  "severity": "warning",
  "resourceRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
  "field": {"path": "spec.replicas"},
}]`;
    expect((await runFunction(starlark, files, script(source))).results).toEqual([
      {
        message: 'too few',
        severity: 'warning',
        resourceRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        field: { path: 'spec.replicas' },
      },
    ]);
  });

  test('by printing is no finding, and is kept up to a limit', async () => {
    const { messages, stderr } = await runFunction(starlark, files, script('for i in range(1000): print("x" * 5000)'));
    expect(messages).toEqual([]);
    const lines = (stderr ?? '').split('\n');
    expect(lines).toHaveLength(101);
    expect(lines[0]).toBe(`${'x'.repeat(2000)}…`);
    expect(lines[99]).toBe('the script printed more than 100 lines; the rest is omitted');
  });

  test('by printing is kept if the script fails', async () => {
    const { messages, stderr } = await runFunction(starlark, files, script('print("look")\nfail("no")'));
    expect(messages).toEqual(['error: fail: no']);
    expect(stderr).toBe('look\n');
  });

  test('names the place of an error in it', async () => {
    const one = await runFunction(starlark, files, script('print(ctx.resource_list["nope"])'));
    expect(one.messages).toEqual(['error: test:1:24: key "nope" not in dict']);
    const { messages } = await runFunction(starlark, files, script('def f(x): return x["nope"]\nf({})'));
    expect(messages).toEqual([
      'error: test:1:19: key "nope" not in dict\nTraceback (most recent call last):\n  test:2:2: in <toplevel>\n  test:1:19: in f',
    ]);
  });
});

test.each([
  ['ctx.resource_list["items"][0]["spec"]["y"] = lambda: 1', /items\[0\]\.spec\.y is of type function/],
  ['ctx.resource_list["items"][0]["spec"][1] = 1', /items\[0\]\.spec has a field whose name is of type int/],
  [
    'ctx.resource_list["items"][0]["spec"]["y"] = ctx.resource_list',
    /contains itself, or is nested more than 200 levels/,
  ],
  ['ctx.resource_list["items"][0]["spec"] = float("nan")', /items\[0\]\.spec is a number that cannot be written/],
  ['print(ctx.open_api["definitions"])', /ctx.open_api is not supported/],
  ['print(ctx.constructor)', /struct has no .constructor field or method/],
])('fails: %s', async (source, message) => {
  const run = await runFunction(starlark, files, script(source));
  expect(run.files).toEqual(files);
  expect(run.messages).toHaveLength(1);
  expect(run.messages[0]).toMatch(message);
});

test.each([
  ['x = ', /StarlarkRun test: test:1:5: got newline/],
  ['while True: pass', /StarlarkRun test: test:1:13: the script was stopped: it takes more than 10000000 steps/],
  ['ctx.resource_list["items"] = 1', /its items are not a list/],
  ['ctx.resource_list["items"].append({})', /item 2 is not a resource: it has no kind/],
  ['ctx.resource_list["results"] = 1', /results/],
  ['ctx.resource_list["items"].append(ctx.resource_list["items"][0])', /same path and the same index/],
])('refuses: %s', async (source, message) => {
  await expect(runFunction(starlark, files, script(source))).rejects.toThrow(message);
});

test('refuses a configuration without a script', async () => {
  await expect(runFunction(starlark, files)).rejects.toThrow('starlark needs a configuration');
  await expect(runFunction(starlark, files, { other: 'x' })).rejects.toThrow('it has no script: data.source is empty');
  await expect(runFunction(starlark, files, 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n')).rejects.toThrow(
    'use a StarlarkRun (fn.kpt.dev/v1alpha1) or ConfigMap (v1)',
  );
});

test('runs the scripts of real packages', skipFor(corpusMissing), async () => {
  const runs: Record<string, unknown> = {};
  for (const { name, files: contents } of corpusPackages()) {
    const texts = new Map([...contents].map(([path, data]): [string, string] => [path, data.toString()]));
    const { resources } = readResources(texts);
    for (const config of resources.filter(({ kind }) => kind === 'StarlarkRun')) {
      const items = resources.map((resource) => resource.clone());
      const list: ResourceList = { items, config, results: [] };
      await starlark.run(list, { signal: new AbortController().signal });
      const changed = list.items.filter((item) => item.isChanged).map(({ kind, name }) => `${kind} ${name}`);
      runs[`${name}/${config.file}`] = { changed, messages: list.results.map(({ message }) => message) };
    }
  }
  expect(runs).toMatchInlineSnapshot(`
    {
      "external-secrets/fn-config-remove-labels.yaml": {
        "changed": [],
        "messages": [],
      },
      "flux-gitrepo-kustomize/set-values.yaml": {
        "changed": [
          "GitRepository example-flux-edge",
          "Kustomization example-flux-edge",
        ],
        "messages": [],
      },
      "ghost/ghost-app/fn-config-disable-https.yaml": {
        "changed": [],
        "messages": [
          "disable-https:4:46: pop: missing key
    Traceback (most recent call last):
      disable-https:8:14: in <toplevel>
      disable-https:4:46: in disable_https",
        ],
      },
      "ghost/ghost-app/fn-config-enable-https.yaml": {
        "changed": [
          "Ingress ghost-app",
        ],
        "messages": [],
      },
      "ghost/ghost-app/fn-config-validate-host.yaml": {
        "changed": [],
        "messages": [],
      },
      "repository/set-values.yaml": {
        "changed": [
          "Repository example-repo",
          "Repository example-repo",
          "Token example-repo-access-token-configsync",
          "Token example-repo-access-token-porch",
        ],
        "messages": [],
      },
      "rootsync/set-values.yaml": {
        "changed": [
          "RootSync example-rootsync",
        ],
        "messages": [],
      },
      "vlanindex/set-values.yaml": {
        "changed": [
          "VLANIndex example",
        ],
        "messages": [],
      },
    }
  `);
});
