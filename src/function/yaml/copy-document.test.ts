import { expect, test } from 'vitest';
import { isScalar, type Scalar } from 'yaml';
import { Resource } from '../resource/resource.ts';

const TEXT = `# about
apiVersion: v1 # version
kind: ConfigMap
metadata: {name: a, labels: {app: "1"}}
data:
  # before
  list:
    - 'x' # kpt-set: x
    - {y: z}
  text: |
    two
    lines
`;

test('a copy is written as its original, and what becomes of it does not touch the original', () => {
  const original = Resource.parse(TEXT, { file: 'a.yaml', index: 0 });
  const copy = original.clone();
  expect(copy.toText()).toBe(TEXT);
  expect(copy.isChanged).toBe(false);
  copy.set(['data', 'list', 0], 'new');
  copy.set(['data', 'list', 1, 'y'], 'new');
  copy.set(['metadata', 'labels', 'more'], 'new');
  copy.delete(['data', 'text']);
  const version = copy.node(['apiVersion']);
  if (isScalar(version)) (version as Scalar).comment = ' new';
  copy.document.commentBefore = ' new';
  copy.file = 'b.yaml';
  expect(original.toText()).toBe(TEXT);
  expect(original.isChanged).toBe(false);
  expect(original.document.commentBefore).not.toBe(' new');
  expect(original.file).toBe('a.yaml');
  expect(copy.isChanged).toBe(true);
});
