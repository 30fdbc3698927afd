const MEBIBYTE = 1024 * 1024;

/** About so many bytes of parts, which get their number. */
export function filled(part: (index: number) => string, bytes = MEBIBYTE - 2000): string {
  const parts: string[] = [];
  let length = 0;
  for (let index = 0; length < bytes; index += 1) {
    const text = part(index);
    parts.push(text);
    length += text.length;
  }
  return parts.join('');
}

const joined = (part: (index: number) => string, bytes?: number) =>
  filled((index) => `${part(index)},`, bytes).slice(0, -1);

const map = (fields: string) => `{"metadata":{"name":"hostile"},${fields}}`;
const meta = (fields: string) => `{"metadata":{"name":"hostile",${fields}}}`;

/** Bodies of a ConfigMap in JSON, of about 1 MiB. */
export const JSON_BODIES: Readonly<Record<string, string>> = {
  'many keys of data': map(`"data":{${joined((i) => `"k${i}":""`)}}`),
  'one large value': map(`"data":{"a":"${'x'.repeat(MEBIBYTE - 100)}"}`),
  escapes: map(`"data":{"a":"${'\\u0000'.repeat(MEBIBYTE / 6 - 100)}"}`),
  'values of the wrong type': map(`"data":{${joined((i) => `"k${i}":1`)}}`),
  'binary data that is no base64': map(`"binaryData":{${joined((i) => `"k${i}":"?"`)}}`),
  'duplicate keys': map(`"data":{${joined(() => '"a":""')}}`),
  'a duplicate object': `{${joined(() => '"metadata":{"name":"a"}')}}`,
  'unknown fields': map(joined((i) => `"u${i}":0`)),
  'unknown fields, deep': map(joined((i) => `"u${i}":${'{"a":'.repeat(50)}0${'}'.repeat(50)}`)),
  'empty lists': map(`"x":[${joined(() => '[]', 499_000)}]`),
  'open lists': '['.repeat(MEBIBYTE - 1000),
  'open objects': '{"a":'.repeat(MEBIBYTE / 5 - 1000),
  labels: meta(`"labels":{${joined((i) => `"k${i}":"v"`)}}`),
  'wrong labels': meta(`"labels":{${joined((i) => `"k ${i}":" "`)}}`),
  annotations: meta(`"annotations":{${joined((i) => `"k${i}":"v"`)}}`),
  finalizers: meta(`"finalizers":[${joined((i) => `"a.b/f${i}"`)}]`),
  owners: meta(
    `"ownerReferences":[${joined((i) => `{"apiVersion":"v1","kind":"ConfigMap","name":"o${i}","uid":"${i}"}`)}]`,
  ),
  'managed fields': meta(
    `"managedFields":[${joined((i) => `{"manager":"m${i}","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k${i}":{}}}}`)}]`,
  ),
  'one long key': map(`"data":{"${'k'.repeat(MEBIBYTE - 100)}":""}`),
  'a long name': `{"metadata":{"name":"${'a'.repeat(MEBIBYTE - 100)}"}}`,
  numbers: map(`"x":[${joined(() => '1e999', 900_000)}]`),
};

/** Of as many values as an object may have. */
export const JSON_BODIES_AT_LIMIT: Readonly<Record<string, string>> = {
  'keys of data': map(`"data":{${numberedJson(7900, (i) => `"k${i}":""`)}}`),
  'values of the wrong type': map(`"data":{${numberedJson(7900, (i) => `"k${i}":1`)}}`),
  'binary data that is no base64': map(`"binaryData":{${numberedJson(7900, (i) => `"k${i}":"?"`)}}`),
  'unknown fields': map(numberedJson(7900, (i) => `"u${i}":0`)),
  labels: meta(`"labels":{${numberedJson(7900, (i) => `"k${i}":"v"`)}}`),
  'wrong labels': meta(`"labels":{${numberedJson(7900, (i) => `"k ${i}":" "`)}}`),
  annotations: meta(`"annotations":{${numberedJson(7900, (i) => `"k${i}":"v"`)}}`),
  finalizers: meta(`"finalizers":[${numberedJson(7900, (i) => `"a.b/f${i}"`)}]`),
  owners: meta(
    `"ownerReferences":[${numberedJson(1500, (i) => `{"apiVersion":"v1","kind":"ConfigMap","name":"o${i}","uid":"${i}"}`)}]`,
  ),
};

function numberedJson(count: number, part: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => part(index)).join(',');
}

/** YAML of about 1 MiB, or of as much as is read. */
export const YAML_BODIES: Readonly<Record<string, string>> = {
  lines: `metadata:\n  name: hostile\ndata:\n${filled((i) => `  k${i}: ""\n`)}`,
  flow: `metadata: {name: hostile}\nx: [${filled(() => 'a,')}a]\n`,
  dashes: `x:\n${filled(() => '- - - -\n')}`,
  comments: `metadata: {name: hostile}\n${filled(() => '#\n')}`,
  aliases: `a: &a x\nb: [${filled(() => '*a,')}*a]\n`,
  anchors: filled((i) => `a${i}: &a${i} x\n`),
  documents: filled(() => '---\na: b\n'),
  'an open quote': `a: "${filled(() => 'x\n')}`,
  'a block': `metadata: {name: hostile}\ndata:\n  a: |\n${filled(() => '    x\n')}`,
  nesting: filled(() => '- '),
  'duplicate keys': filled(() => 'a: b\n'),
  'lines, as much as is read': `metadata:\n  name: hostile\ndata:\n${filled((i) => `  k${i}: ""\n`, 120_000)}`,
  'dashes, as much as is read': `x:\n${filled(() => '- - - -\n', 120_000)}`,
};

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const AS_READ = 250_000;

/** Kptfiles; those that are named so have as much as is read of one. */
export const KPTFILES: Readonly<Record<string, string>> = {
  '9,000 gates and conditions': `${HEAD}info:\n  readinessGates:\n${numbered(9000, (i) => `  - conditionType: t${i}\n`)}status:\n  conditions:\n${numbered(9000, (i) => `  - type: t${i}\n    status: "True"\n`)}`,
  '500 gates and conditions': `${HEAD}info:\n  readinessGates:\n${numbered(500, (i) => `  - conditionType: t${i}\n`)}status:\n  conditions:\n${numbered(499, (i) => `  - type: t${i}\n    status: "True"\n    message: ${'x'.repeat(300)}\n`)}`,
  'conditions of objects': `${HEAD}status:\n  conditions:\n${numbered(499, (i) => `  - type: a.b/v1.Thing.n${i}\n    status: "True"\n`)}`,
  'conditions of one type': `${HEAD}status:\n  conditions:\n${numbered(499, (i) => `  - type: t\n    status: "${i % 2 === 0 ? 'True' : 'False'}"\n`)}`,
  annotations: `${HEAD}  annotations:\n${filled((i) => `    k${i}: v\n`, AS_READ)}`,
  comments: `${HEAD}${filled(() => '#\n', AS_READ)}`,
  setters: `${HEAD}pipeline:\n  mutators:\n  - image: apply-setters:v0.2\n    configMap:\n${filled((i) => `      k${i}: v\n`, AS_READ)}`,
  functions: `${HEAD}pipeline:\n  mutators:\n${filled((i) => `  - image: nothing:v${i}\n`, AS_READ)}`,
  dashes: `${HEAD}x:\n${filled(() => '- - - -\n', AS_READ)}`,
  flow: `${HEAD}x: [${filled(() => 'a,', AS_READ)}a]\n`,
  'a mebibyte': `${HEAD}${filled((i) => `u${i}:\n`)}`,
};

function numbered(count: number, part: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => part(index)).join('');
}

/** Files of packages beside the Kptfile. */
export const FILES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a large object': {
    'a.yaml': `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n${filled((i) => `  k${i}: v\n`)}`,
  },
  'many objects': {
    'a.yaml': filled((i) => `---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a${i}\n`),
  },
  'many files': Object.fromEntries(
    Array.from({ length: 5000 }, (_, index) => [
      `f${index}.yaml`,
      `apiVersion: v1\nkind: X\nmetadata: {name: a${index}}\n`,
    ]),
  ),
  'aliases that expand': {
    'a.yaml': `apiVersion: v1\nkind: X\na: &a [${'x,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: &c [${'*b,'.repeat(50)}]\nd: [${'*c,'.repeat(50)}]\n`,
  },
  dashes: { 'a.yaml': `apiVersion: v1\nkind: X\nx:\n${filled(() => '- - - -\n')}` },
  flow: { 'a.yaml': `apiVersion: v1\nkind: X\nx: [${filled(() => 'a,')}a]\n` },
  text: { 'a.txt': 'x'.repeat(MEBIBYTE - 1000) },
};
