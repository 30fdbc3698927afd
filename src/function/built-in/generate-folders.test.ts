import { expect, test } from 'vitest';
import { generateFolders } from './generate-folders.ts';
import { runFunction } from './support/testing.ts';

const V3 = 'blueprints.cloud.google.com/v1alpha3';
const hierarchy = (spec: string, { version = V3, metadata = '' } = {}) =>
  `apiVersion: ${version}\nkind: ResourceHierarchy\nmetadata:\n  name: root\n${metadata}  annotations:\n    config.kubernetes.io/local-config: "true"\n    team: net\nspec:\n${spec}`;
const PARENT = '  parentRef:\n    external: 123456789012\n';

async function made(text: string) {
  const { files, messages } = await runFunction(generateFolders, { 'h.yaml': text });
  return { folders: (files[''] ?? '').split('---\n').filter((each) => each !== ''), messages };
}

test('makes the folders of a tree, with references to those above', async () => {
  const config = '  config:\n    - Dev Team:\n        - retail\n    - 2024\n';
  const { folders, messages } = await made(hierarchy(`${PARENT}${config}`, { metadata: '  namespace: ns\n' }));
  expect(messages).toEqual([]);
  const folder = (name: string, annotations: string, spec: string) =>
    `apiVersion: resourcemanager.cnrm.cloud.google.com/v1beta1\nkind: Folder\nmetadata:\n  name: ${name}\n  namespace: ns\n  annotations:\n    team: net\n${annotations}spec:\n${spec}`;
  expect(folders).toEqual([
    folder('dev-team', '', '  displayName: Dev Team\n  organizationRef:\n    external: "123456789012"\n'),
    folder(
      'dev-team.retail',
      '    config.kubernetes.io/depends-on: resourcemanager.cnrm.cloud.google.com/namespaces/ns/Folder/dev-team\n',
      '  displayName: retail\n  folderRef:\n    name: dev-team\n',
    ),
    folder('"2024"', '', '  displayName: "2024"\n  organizationRef:\n    external: "123456789012"\n'),
  ]);
});

test('puts subtrees in the places that name them, and the top into a folder', async () => {
  const spec =
    '  parentRef:\n    kind: Folder\n    external: f1\n  subtrees:\n    env:\n      - dev\n      - prod\n    team:\n      - a:\n          $subtree: env\n  config:\n    - x:\n        $subtree: team\n    - z:\n        $subtree: env\n';
  const { folders } = await made(hierarchy(spec));
  expect(folders.map((text) => /^ {2}name: (.*)$/m.exec(text)?.[1])).toEqual([
    ...['x', 'x.a', 'x.a.dev', 'x.a.prod'],
    ...['z', 'z.dev', 'z.prod'],
  ]);
  expect(folders[0]).toContain('  folderRef:\n    external: f1\n');
  expect(folders[2]).toContain('  folderRef:\n    name: x.a\n');
});

test('refers by annotations in older versions, and warns of them', async () => {
  const older = `warning: ResourceHierarchy root references an older Resource Hierarchy GroupVersion. Latest GroupVersion is ${V3}.`;
  const second = await made(hierarchy(`${PARENT}  config:\n    - a:\n        - b\n`, { version: 'cft.dev/v1alpha2' }));
  expect(second.messages).toEqual([older]);
  expect(second.folders[0]).toContain(
    '    cnrm.cloud.google.com/organization-id: "123456789012"\nspec:\n  displayName: a\n',
  );
  expect(second.folders[1]).toContain('    cnrm.cloud.google.com/folder-ref: a\nspec:\n  displayName: b\n');
  const layers = '  organization: 1\n  layers: [team, env]\n  config:\n    team: [a, b]\n    env: [dev]\n';
  const first = await made(hierarchy(layers, { version: 'cft.dev/v1alpha1' }));
  expect(first.folders.map((text) => /^ {2}name: (.*)$/m.exec(text)?.[1])).toEqual(['a', 'a.dev', 'b', 'b.dev']);
  expect(first.folders[0]).not.toContain('team: net');
});

test('writes over the folder that is there, and changes nothing the second time', async () => {
  const text = hierarchy(`${PARENT}  config: [shared]\n`);
  const [folder = ''] = (await made(text)).folders;
  const old = folder.replace('displayName: shared', 'displayName: other # by hand');
  const { files } = await runFunction(generateFolders, { 'h.yaml': text, 'f.yaml': old });
  expect(files).toEqual({ 'h.yaml': text, 'f.yaml': old.replace('other', 'shared') });
  expect((await runFunction(generateFolders, files)).files).toEqual(files);
});

const doubled = Array.from(
  { length: 60 },
  (_, at) => `    t${at + 1}: [{a: {$subtree: t${at}}}, {b: {$subtree: t${at}}}]\n`,
);
test.each([
  ['  config: [a]\n', V3, 'has an undefined parentRef'],
  ['  parentRef: {kind: Project, external: a}\n', V3, 'has an unsupported parentRef kind'],
  [`${PARENT}  config: [{a: {$subtree: no}}]\n`, V3, 'references non-existent subtree "no"'],
  [`${PARENT}  config: [{a: text}]\n`, V3, 'has something else than a list of folders below "a"'],
  [`${PARENT}  config: text\n`, V3, 'has something else than a list in spec.config'],
  [
    `${PARENT}  subtrees:\n    t0: [x]\n${doubled.join('')}  config: [{a: {$subtree: t60}}]\n`,
    V3,
    /^comes to \d\S+ folders/,
  ],
  ['  layers: [team]\n  config: {}\n', 'cft.dev/v1alpha1', /^has no entry for layer "team"/],
])('refuses %j', async (spec, version, problem) => {
  const { folders, messages } = await made(hierarchy(spec, { version }));
  expect(folders).toEqual([]);
  const [, message = ''] = /^error: ResourceHierarchy root (.*)/.exec(messages.at(-1) ?? '') ?? [];
  expect(message).toMatch(problem);
});
