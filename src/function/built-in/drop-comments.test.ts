import { expect, test } from 'vitest';
import { dropComments } from './drop-comments.ts';
import { runFunction } from './support/testing.ts';

test('removes comments in any place, and nothing else', async () => {
  const { files } = await runFunction(dropComments, {
    'a.yaml': `# Copyright
# of a user

apiVersion: apps/v1 # first
kind: Deployment
# above a field
metadata: # kpt-merge: /web
  name: 'web' # kpt-set: \${name}
  labels: # kpt-set: \${labels}
    # in a map
    app: "a # b"

  # below
spec:
  args: # args
    # above an item
    - one # item
    -   two
    # after the items
  flow: [a, b] # flow
  text: |  # of the block
    # not a comment
    line
# at the end
`,
    Kptfile: 'apiVersion: kpt.dev/v1\nkind: Kptfile # it\nmetadata:\n  name: a\n',
  });
  expect(files['a.yaml']?.replace(/\n+/g, '\n').trimStart()).toBe(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: 'web'
  labels:
    app: "a # b"
spec:
  args:
    - one
    -   two
  flow: [a, b]
  text: |
    # not a comment
    line
`);
  expect(files.Kptfile).toBe('apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n');
});

test('removes comments inside of flow collections', async () => {
  const text = 'apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {\n  # above\n  x: 1, # behind\n  y: "# 2"\n}\n';
  const { files } = await runFunction(dropComments, text);
  expect(files['resources.yaml']).toBe('apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {x: 1, y: "# 2"}\n');
});

test('leaves resources without comments alone', async () => {
  const text = 'apiVersion: v1\nkind:   Secret\nmetadata: {name: a}\n';
  expect((await runFunction(dropComments, text)).files['resources.yaml']).toBe(text);
});
