import { expect, test } from 'vitest';
import { editKptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { kptfileChanges } from './kptfile-changes.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const BEFORE = `${HEAD}  labels: {app: shop, old: x}
  annotations:
    config.kubernetes.io/local-config: "true"
info:
  description: A shop
  keywords: [a, b]
  readinessGates:
    - conditionType: One
    - conditionType: Two
pipeline:
  mutators:
    - image: set-labels
status:
  conditions:
    - {type: One, status: "False", reason: Waiting}
    - {type: Gone, status: "True"}
    - {type: Rendered, status: "True", reason: RenderSuccess}
`;

test('labels, annotations, name and information become edits', () => {
  const after = BEFORE.replace('name: shop', 'name: store')
    .replace('{app: shop, old: x}', '{app: store, new: y}')
    .replace('annotations:\n', 'annotations:\n    a/b: c\n')
    .replace('A shop', 'A store')
    .replace('[a, b]', '[a]');
  const { edits, notes } = kptfileChanges(BEFORE, after);
  expect(edits).toEqual([
    { op: 'setName', name: 'store' },
    { op: 'setLabel', key: 'app', value: 'store' },
    { op: 'setLabel', key: 'new', value: 'y' },
    { op: 'removeLabel', key: 'old' },
    { op: 'setAnnotation', key: 'a/b', value: 'c' },
    { op: 'setInfo', field: 'description', value: 'A store' },
    { op: 'setInfo', field: 'keywords', value: ['a'] },
  ]);
  expect(notes).toEqual([]);
  const [edited, wanted] = [readKptfile(editKptfile(BEFORE, edits)), readKptfile(after)];
  expect(edited).toEqual(wanted);
});

test('functions cannot request approvals', () => {
  const after = BEFORE.replace('annotations:\n', 'annotations:\n    approval.nephio.org/policy: always\n');
  const { edits, notes } = kptfileChanges(BEFORE, after);
  expect(edits).toEqual([]);
  expect(notes).toEqual([expect.stringContaining('functions cannot request approvals')]);
});

test('functions set and remove conditions and add gates, but cannot set Rendered', () => {
  const after = BEFORE.replace('reason: Waiting', 'reason: Asked, message: a person')
    .replace('    - {type: Gone, status: "True"}\n', '    - {type: New, status: "True"}\n')
    .replace('type: Rendered, status: "True"', 'type: Rendered, status: "False"')
    .replace('- conditionType: Two', '- conditionType: Three');
  expect(kptfileChanges(BEFORE, after)).toEqual({
    edits: [],
    conditions: [
      { type: 'One', status: 'False', reason: 'Asked', message: 'a person' },
      { type: 'New', status: 'True' },
    ],
    withdraw: ['Gone'],
    gates: ['Three'],
    notes: ['Kptfile: a function removed the readiness gate Two; it stays'],
  });
});

test('changes that only people may make are noted and ignored', () => {
  const after = `${BEFORE.replace('image: set-labels', 'image: set-image')}upstream:\n  type: git\nextra: 1\n`.replace(
    '  name: shop\n',
    '  name: shop\n  namespace: n\n',
  );
  const { notes, ...changes } = kptfileChanges(BEFORE, after);
  expect(changes).toEqual({ edits: [], conditions: [], withdraw: [], gates: [] });
  expect(notes).toEqual([
    'Kptfile: what functions changed in pipeline, upstream, extra, metadata.namespace is ignored; only users may change it',
  ]);
});

test('comments, order and the render status are no changes', () => {
  const after = `# comment\n${BEFORE.replace('{app: shop, old: x}', '{old: x, app: shop}')}  renderStatus: {errorSummary: x}\n`;
  const nothing = { edits: [], conditions: [], withdraw: [], gates: [], notes: [] };
  expect(kptfileChanges(BEFORE, after)).toEqual(nothing);
  expect(kptfileChanges(BEFORE, 'not a Kptfile')).toEqual(nothing);
});

test('a change that no edit can make is noted', () => {
  const { edits, notes } = kptfileChanges(HEAD, `${HEAD}  labels: {"": x, good: y}\n`);
  expect(edits).toEqual([{ op: 'setLabel', key: 'good', value: 'y' }]);
  expect(notes).toHaveLength(1);
});
