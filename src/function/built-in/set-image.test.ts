import { expect, test } from 'vitest';
import { setImage } from './set-image.ts';
import { runFunction } from './support/testing.ts';

const pod = (image: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n    - image: ${image}\n`;

const DIGEST = 'sha256:0123abcd';

test.each([
  ['the tag', 'alpine:3.22', { name: 'alpine', newTag: '3.24' }, 'alpine:3.24'],
  ['the name alone', 'alpine:3.22', { name: 'alpine', newName: 'r.example.org/a' }, 'r.example.org/a:3.22'],
  ['both', 'alpine', { name: 'alpine', newName: 'debian', newTag: 'bookworm' }, 'debian:bookworm'],
  ['a tag to a digest', 'alpine:3.22', { name: 'alpine', digest: DIGEST }, `alpine@${DIGEST}`],
  ['a digest to a tag', `alpine@${DIGEST}`, { name: 'alpine', newTag: '3' }, 'alpine:3'],
  ['the name before a digest', `a/b:1@${DIGEST}`, { name: 'a/b', newName: 'c' }, `c:1@${DIGEST}`],
  ['a digest rather than a tag', 'a', { name: 'a', newTag: '2', digest: DIGEST }, `a@${DIGEST}`],
  ['behind a port', 'r:5000/a:1', { name: 'r:5000/a', newTag: '2' }, 'r:5000/a:2'],
  ['one tag only', 'alpine:3.22', { name: 'alpine:3.22', newTag: '4' }, 'alpine:4'],
])('changes %s', async (_, image, config, expected) => {
  const { files, messages } = await runFunction(setImage, pod(image), config);
  expect(files['resources.yaml']).toBe(pod(expected));
  expect(messages).toEqual(['info: summary: updated a total of 1 image(s)']);
});

test.each(['alpine-glibc:3', 'library/alpine:3', 'r.example.org:5000/alpine', 'alpine:3/other', 'alpine:4'])(
  'leaves %s alone',
  async (image) => {
    const { files, messages } = await runFunction(setImage, pod(image), { name: 'alpine', newTag: '4' });
    expect(files['resources.yaml']).toBe(pod(image));
    expect(messages).toEqual(['info: summary: updated a total of 0 image(s)']);
  },
);

test('finds the containers of all kinds', async () => {
  const text = (image: string) => `apiVersion: batch/v1
kind: CronJob
metadata:
  name: tidy
spec:
  jobTemplate:
    spec:
      template:
        spec:
          initContainers:
            - image: ${image} # first
          containers:
            - name: a
              image: ${image}
---
apiVersion: example.org/v1
kind: Fleet
metadata:
  name: f
spec:
  template:
    spec:
      ephemeralContainers:
        - image: "${image}"
  boats:
    - engine: ${image}
  image: alpine:1
`;
  const { files, messages } = await runFunction(
    setImage,
    text('alpine:1'),
    `apiVersion: fn.kpt.dev/v1alpha1
kind: SetImage
metadata:
  name: image
image:
  name: alpine
  newTag: 2
additionalImageFields:
  - path: spec/boats[]/engine
    kind: Fleet
`,
  );
  expect(files['resources.yaml']).toBe(text('alpine:2'));
  expect(messages).toEqual(['info: summary: updated a total of 4 image(s)']);
});

test('reports an invalid configuration', async () => {
  await expect(runFunction(setImage, pod('a'), { newName: 'b' })).rejects.toThrow('must specify `name`');
  await expect(runFunction(setImage, pod('a'), { name: 'a' })).rejects.toThrow('must specify one of `newName`');
  await expect(runFunction(setImage, pod('a'), { name: 'a', tag: '1' })).rejects.toThrow('unknown field "tag"');
});
