import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export type HostileFile = string | Uint8Array | { readonly link: string };

export interface HostilePackage {
  readonly files: Readonly<Record<string, HostileFile>>;
  /** The line with the reason why it cannot be rendered; undefined if it can. */
  readonly failure?: RegExp;
}

/** A Kptfile with entries of a pipeline, as YAML in the flow style. */
export function kptfile(...mutators: readonly string[]): string {
  const entries = mutators.map((entry) => `    - { ${entry} }\n`).join('');
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators:\n${entries}`;
}

export function configMap(name: string, rest = ''): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${rest}`;
}

export async function writeFiles(folder: string, files: Readonly<Record<string, HostileFile>>): Promise<void> {
  for (const [name, data] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    if (typeof data === 'object' && 'link' in data) await symlink(data.link, path);
    else await writeFile(path, data);
  }
}

export const BASE = { 'a.yaml': configMap('a', 'data: { x: y }\n'), 'b.yaml': configMap('b') };
export const NAMESPACE = 'image: set-namespace, configMap: { namespace: blog }';

const LIST = 'apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\n';
/** 10 to the power of 6 values by aliases. */
const BOMB = ['a: &a [x,x,x,x,x,x,x,x,x,x]', ...['ab', 'bc', 'cd', 'de', 'ef'].map(bombLine)];

function bombLine(names: string): string {
  const [from = '', to = ''] = names;
  return `${to}: &${to} [${Array(10).fill(`*${from}`).join(',')}]`;
}

/** Shell scripts of misbehaving functions; `{}` is the folder of the programs. */
const PROGRAMS: Readonly<Record<string, string>> = {
  forks: 'for i in 1 2 3; do sleep 997 & done; setsid sleep 997 & cat',
  gigabyte: 'head -c 1073741824 /dev/zero',
  chatters: 'head -c 100000000 /dev/zero >&2; cat',
  'moves-out': "sed \"s#/path: 'a.yaml'#/path: '../../a.yaml'#\"",
  'no-yaml': 'cat >/dev/null; echo "a: {{ b"',
  'no-list': 'cat >/dev/null; echo "a: b"',
  silent: 'cat >/dev/null',
  bytes: "cat >/dev/null; printf 'kind: \\000\\377'",
  duplicates: 'awk \'/^- apiVersion/ { item = "" } { item = item $0 "\\n"; print } END { printf "%s", item }\'',
  renames: "sed 's/name: b$/name: c/'",
  'drops-all': `cat >/dev/null; printf '${LIST}items: []\\n'`,
  complains: "cat >/dev/null; printf 'one\\n\\033[31mtwo\\n' >&2; exit 7",
  crashes: 'kill -SEGV $$',
  'prints-a-bomb': `cat >/dev/null; printf '${LIST}items:\\n- kind: A\\n${BOMB.map((line) => `  ${line}\\n`).join('')}'`,
  'sleeps-forever': 'echo $$ >> {}/asleep; sleep 997',
};

export async function writePrograms(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, script] of Object.entries(PROGRAMS)) await writeProgram(folder, name, script);
}

export async function writeProgram(folder: string, name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script.replaceAll('{}', folder)}\n`, { mode: 0o755 });
}

const exec = (program: string) => ({ Kptfile: kptfile(`exec: ${program}`), ...BASE });
const byProgram = (program: string, why: string): HostilePackage => ({
  files: exec(program),
  failure: new RegExp(`^Kptfile: pipeline\\.mutators\\[0\\], function "${program}": ${why}`),
});
const byFunction = (files: HostilePackage['files'], name: string, why: string): HostilePackage => ({
  files,
  failure: new RegExp(`^Kptfile: pipeline\\.mutators\\[0\\], function "${name}": ${why}`),
});

function setters(configMapText: string, value: string): HostilePackage['files'] {
  return { Kptfile: kptfile(`image: apply-setters, configMap: ${configMapText}`), 'a.yaml': configMap('a', value) };
}

function search(configMapText: string): HostilePackage['files'] {
  const long = configMap('a', `data:\n  x: ${'a'.repeat(200_000)}!\n`);
  return { Kptfile: kptfile(`image: search-replace, configMap: ${configMapText}`), 'a.yaml': long };
}

function replacement(source: string, target: string): HostilePackage['files'] {
  const config = `apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: r\nreplacements:\n  - source: ${source}\n    targets: [${target}]\n`;
  return { Kptfile: kptfile('image: apply-replacements, configPath: r.yaml'), 'r.yaml': config, ...BASE };
}

function script(lines: string): HostilePackage['files'] {
  const config = `apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: s\nsource: |\n${lines.replace(/^/gm, '  ')}\n`;
  return { Kptfile: kptfile('image: starlark, configPath: s.yaml'), 's.yaml': config, ...BASE };
}

const withNamespace = (files: HostilePackage['files']) => ({ Kptfile: kptfile(NAMESPACE), ...BASE, ...files });

/** Packages by name. Those that cannot be rendered must stay as they are; programs are found in their folder by name. */
export const HOSTILE_PACKAGES: Readonly<Record<string, HostilePackage>> = {
  forks: { files: exec('forks') },
  renames: { files: exec('renames') },
  chatters: { files: exec('chatters') },
  gigabyte: byProgram('gigabyte', 'exec "gigabyte" printed more than 67108864 bytes$'),
  'moves-out': byProgram('moves-out', '.*ConfigMap a: path "../../a.yaml" is refused'),
  'no-yaml': byProgram('no-yaml', 'ResourceList:\\d: not valid YAML'),
  'no-list': byProgram('no-list', '.*ResourceList'),
  silent: byProgram('silent', 'it printed no ResourceList$'),
  bytes: byProgram('bytes', '.*ResourceList'),
  duplicates: byProgram('duplicates', '.*b.yaml: ConfigMap b and ConfigMap b have the same path and the same index 0$'),
  'drops-all': byProgram('drops-all', 'it removed "Kptfile"'),
  complains: byProgram('complains', 'one .*two$'),
  crashes: byProgram('crashes', 'it ended with exit code 139$'),
  'prints-a-bomb': byProgram('prints-a-bomb', 'ResourceList:\\d+: its aliases expand to more than 100000 values'),
  'no-program': byProgram('nonesuch', 'exec "nonesuch" cannot be run: there is no such program'),
  'no-image': byFunction(
    { Kptfile: kptfile('image: "--privileged -v /:/host x"'), ...BASE },
    '--privileged -v /:/host x',
    'image .* is not a valid name',
  ),
  'setters-bomb': byFunction(
    setters(
      `{ name: "${'a'.repeat(50_000)}!" }`,
      `data:\n  x: ${'a'.repeat(50_000)} # kpt-set: ${`\${name}`.repeat(2_000)}\n`,
    ),
    'apply-setters',
    'it returned more than 67108864 bytes of resources$',
  ),
  'setters-prototype': byFunction(
    setters('{ constructor: y }', `data:\n  x: a # kpt-set: \${toString}-\${constructor}\n`),
    'apply-setters',
    'a\\.yaml: ConfigMap a: data\\.x: values for setters .*toString',
  ),
  'regex-bomb': { files: search('{ by-value-regex: "(a+)+(a+)+(a+)+$", put-value: x }') },
  'regex-size': byFunction(
    search('{ by-value-regex: "((a{1000}){1000}){1000}", put-value: x }'),
    'search-replace',
    '.*by-value-regex: a regular expression has at most 2000 parts',
  ),
  'regex-growth': byFunction(
    search(`{ by-value-regex: "(.*)", put-value: "${`\${1}`.repeat(1_000)}" }`),
    'search-replace',
    'it returned more than 67108864 bytes',
  ),
  'source-field': byFunction(
    replacement('{ kind: ConfigMap, name: a, fieldPath: spec.none }', '{ select: { name: b }, fieldPaths: [data.x] }'),
    'apply-replacements',
    'a\\.yaml: ConfigMap a: spec\\.none: .*replacements\\[0\\] of r\\.yaml',
  ),
  'target-field': byFunction(
    replacement('{ kind: ConfigMap, name: a, fieldPath: data.x }', '{ select: { name: b }, fieldPaths: [data.q.r] }'),
    'apply-replacements',
    'b\\.yaml: ConfigMap b: data\\.q\\.r: .*replacements\\[0\\]\\.targets\\[0\\] of r\\.yaml',
  ),
  'no-source': byFunction(
    replacement('{ kind: Secret, fieldPath: data.x }', '{ select: { name: b }, fieldPaths: [data.x] }'),
    'apply-replacements',
    'r\\.yaml: ApplyReplacements r: replacements\\[0\\]\\.source: no resource in the package is kind Secret$',
  ),
  'endless-script': byFunction(
    script('def f():\n  for i in range(1000000000000):\n    pass\nf()'),
    'starlark',
    's\\.yaml: .*takes more than \\d+ steps$',
  ),
  'large-script': byFunction(
    script('def f():\n  x = "a"\n  for i in range(60):\n    x = x + x\nf()'),
    'starlark',
    's\\.yaml: .*it makes a text of more than',
  ),
  'when-bomb': byFunction(
    {
      Kptfile: kptfile(
        `${NAMESPACE}, when: "${['a', 'b', 'c', 'd', 'e'].reduceRight((all, name) => `resources.all(${name}, ${all})`, 'true')}"`,
      ),
      'many.yaml': Array.from({ length: 40 }, (_, at) => configMap(`m${at}`)).join('---\n'),
    },
    'set-namespace',
    'expression .*costs more than',
  ),
  'config-outside': byFunction(
    { Kptfile: kptfile('image: set-labels, configPath: ../../etc/passwd'), ...BASE },
    'set-labels',
    'configPath "../../etc/passwd" must be a path below the folder of the package$',
  ),
  'config-link': byFunction(
    { Kptfile: kptfile('image: set-labels, configPath: c.yaml'), 'c.yaml': { link: '/etc/hostname' }, ...BASE },
    'set-labels',
    'configPath "c.yaml": the package has no such file',
  ),
  'alias-bomb': {
    files: withNamespace({ 'bomb.yaml': configMap('bomb', `data:\n${BOMB.map((line) => `  ${line}\n`).join('')}`) }),
    failure: /^bomb\.yaml:\d+: its aliases expand to more than 100000 values/,
  },
  'deep-resource': {
    files: withNamespace({ 'deep.yaml': configMap('d', `data: ${'{a: '.repeat(150)}x${'}'.repeat(150)}\n`) }),
    failure: /^deep\.yaml:5: it nests deeper than 100 levels$/,
  },
  'key-twice': {
    files: withNamespace({ 'twice.yaml': `${configMap('t')}kind: Secret\n` }),
    failure: /^twice\.yaml:5: the key "kind" occurs twice in one mapping$/,
  },
  'prototype-everywhere': {
    files: withNamespace({
      'p.yaml': configMap(
        'p',
        '  labels: { __proto__: x, constructor: y }\n__proto__: { polluted: yes }\ndata: { __proto__: z }\n',
      ),
      'q.yaml': configMap('q', 'spec:\n  __proto__:\n    polluted: 1\n'),
    }),
  },
  'selector-regex': {
    files: { Kptfile: kptfile(`${NAMESPACE}, selectors: [{ name: "(a+)+$" }]`), 'a.yaml': configMap('a'.repeat(200)) },
  },
  'nothing-for-functions': {
    files: withNamespace({
      'values.yaml': 'replicas: 3\n',
      'list.yaml': '- a\n',
      'text.yaml': 'just text',
      'empty.yaml': '',
      'bytes.yaml': Uint8Array.of(0, 1, 2, 255, 254),
      'logo.png': Uint8Array.of(137, 80, 78, 71),
      'template.yaml': 'apiVersion: v1\nkind: {{ .Kind }}\n{{- if x }}\n',
      'deep.yaml': `a: ${'['.repeat(100_000)}\n`,
      'link.yaml': { link: '/etc/passwd' },
      loop: { link: '.' },
      'nested/Kptfile': { link: '../../Kptfile' },
    }),
  },
  'odd-text': {
    files: {
      Kptfile: kptfile(NAMESPACE).replaceAll('\n', '\r\n'),
      'crlf.yaml': `${configMap('a')}---\n${configMap('b')}`.replaceAll('\n', '\r\n'),
      'bom.yaml': `\ufeff${configMap('c')}`,
      'template.yaml': configMap('t', 'data:\n  x: "{{ .Values.x }}" # {{ y }}\n'),
      'a b.yaml': configMap('d'),
      'ü😀/"\'$(id).yaml': configMap('e'),
      '-rf.yaml': configMap('f'),
      '\u001b[31m.yaml': configMap('g'),
      '__proto__.yaml': configMap('h'),
      'constructor/toString.yaml': configMap('i'),
    },
  },
};
