import { expect, test } from 'vitest';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import { type PackageNode, packageTree } from './package-tree.ts';

type Revision = Stored<PackageRevision>;

/** `number` 0 is a draft; `from` is `<repository>/<package>/<tag or branch>`. */
function revision(path: string, number: number, from?: string, workspace = `v${number}`): Revision {
  const [repository = '', packageName = ''] = path.split('/');
  const place = (text: string) => {
    const [repo = '', directory = '', ref = ''] = text.split('/');
    return { git: { repo: `https://git.example.com/${repo}.git`, directory, ref: `${directory}/${ref}` } };
  };
  return {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { name: `${repository}.${packageName}.${workspace}` },
    spec: {
      ...{ repository, packageName, workspaceName: workspace, revision: number },
      lifecycle: number === 0 ? 'Draft' : 'Published',
    },
    status: {
      selfLock: place(`${path}/v${number}`),
      ...(from === undefined ? {} : { upstreamLock: place(from) }),
    },
  } as unknown as Revision;
}

const shape = (nodes: readonly PackageNode[]): unknown =>
  nodes.map(({ package: name, from, behind, open, downstream }) => [
    [name, from, behind, open.map((one) => `${one.name} from ${one.from}`)],
    ...(downstream.length === 0 ? [] : [shape(downstream)]),
  ]);

test('packages are below their upstreams, with what they are behind, and with open revisions', () => {
  const tree = packageTree([
    revision('edge/web', 1, 'hub/web/v1'),
    revision('edge/web', 2, 'hub/web/v2'),
    revision('edge/web', 0, 'hub/web/v3', 'next'),
    revision('site/web', 1, 'edge/web/v1'),
    revision('hub/web', 1),
    revision('hub/web', 3),
    revision('hub/web', 2),
    revision('edge/new', 0, 'hub/web/v3', 'v1'),
  ]);
  expect(shape(tree)).toEqual([
    [
      ['hub/web', undefined, undefined, []],
      [
        [['edge/new', 'v3', 0, ['edge.new.v1 from v3']]],
        [['edge/web', 'v2', 1, ['edge.web.next from v3']], [[['site/web', 'v1', 1, []]]]],
      ],
    ],
  ]);
  expect(tree[0]?.latest).toEqual({ name: 'hub.web.v3', revision: 3 });
});

test('an upstream that is not registered is named by its address', () => {
  expect(shape(packageTree([revision('edge/web', 1, 'far/web/v7')]))).toEqual([
    [['https://git.example.com/far.git/web', undefined, undefined, []], [[['edge/web', 'web/v7', undefined, []]]]],
  ]);
});

test('packages that were cloned from each other, or from themselves, are in the tree once', () => {
  const tree = packageTree([
    revision('a/x', 1, 'b/x/v1'),
    revision('b/x', 1, 'a/x/v1'),
    revision('c/x', 1, 'c/x/v1'),
    revision('d/x', 1, 'b/x/v1'),
  ]);
  const names = (nodes: readonly PackageNode[]): string[] =>
    nodes.flatMap((node) => [node.package, ...names(node.downstream)]);
  expect(names(tree).sort()).toEqual(['a/x', 'b/x', 'c/x', 'd/x']);
});
