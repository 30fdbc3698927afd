import fc from 'fast-check';
import { expect, test } from 'vitest';
import { corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { runs } from '../../../test/support/runs.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction } from '../model/function.ts';
import { readResources } from '../resource/read-resources.ts';
import { Resource } from '../resource/resource.ts';
import { deleteAnnotations } from './delete-annotations.ts';
import { dropComments } from './drop-comments.ts';
import { ensureNameSubstring } from './ensure-name-substring.ts';
import { removeLocalConfigResources } from './remove-local-config-resources.ts';
import { setAnnotations } from './set-annotations.ts';
import { setImage } from './set-image.ts';
import { setLabels } from './set-labels.ts';
import { setNamePrefix } from './set-name-prefix.ts';
import { setNamespace } from './set-namespace.ts';
import { setStandardLabels } from './set-standard-labels.ts';

const RUNS: readonly (readonly [KrmFunction, Readonly<Record<string, string>> | undefined])[] = [
  [setNamespace, { namespace: 'sea' }],
  [setNamespace, { namespace: 'sea', namespaceMatcher: 'a' }],
  [setLabels, JSON.parse('{"colour":"blue","a":"true","__proto__":"y"}')],
  [setAnnotations, { colour: 'blue', 'example.org/a': '1' }],
  [setImage, { name: 'a', newTag: '2' }],
  [ensureNameSubstring, { prepend: 'dev-' }],
  [setNamePrefix, { prefix: 'b', oldPrefix: 'a' }],
  [deleteAnnotations, { annotationKeys: 'a,__proto__' }],
  [removeLocalConfigResources, undefined],
  [setStandardLabels, undefined],
  [dropComments, undefined],
];

function run(
  [{ run }, data]: (typeof RUNS)[number],
  texts: readonly string[],
): { texts: string[]; messages: string[] } {
  const items = texts.map((text, index) => Resource.parse(text, { file: 'a.yaml', index }));
  const config =
    data === undefined
      ? undefined
      : Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'config' }, data });
  const list = { items, config, results: [] as { message: string }[] };
  run(list as never, { signal: new AbortController().signal });
  return { texts: list.items.map((item) => item.toText()), messages: list.results.map(({ message }) => message) };
}

const NAMES = ['a', 'a-b', 'dev-a', 'sea', '', '__proto__'];
const KEYS = [
  ...['metadata', 'name', 'namespace', 'labels', 'annotations', 'spec', 'template', 'containers', 'image', 'subjects'],
  ...['kind', 'selector', 'matchLabels', 'service', 'volumes', 'configMap', 'rules', 'resourceNames', 'resources'],
  ...['colour', 'a', '__proto__', 'constructor', 'config.kubernetes.io/depends-on'],
  'config.kubernetes.io/local-config',
];
const KINDS: readonly (readonly [string, string])[] = [
  ...(['ConfigMap', 'Namespace', 'Pod', 'Service', 'Secret', 'PersistentVolumeClaim'] as const).map(
    (kind) => ['v1', kind] as const,
  ),
  ...(['Deployment', 'StatefulSet'] as const).map((kind) => ['apps/v1', kind] as const),
  ['batch/v1', 'CronJob'],
  ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  ['apiregistration.k8s.io/v1', 'APIService'],
  ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
  ['networking.k8s.io/v1', 'NetworkPolicy'],
  ['kpt.dev/v1', 'Kptfile'],
  ['example.org/v1', 'Boat'],
];

const { anything } = fc.letrec<{ anything: unknown }>((tie) => ({
  anything: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.constantFrom(null, 1, true, '/namespaces/a/Secret/a, /Boat/a', 'a:1', ...NAMES),
    fc.array(tie('anything'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('anything'), { maxKeys: 5 }),
  ),
}));

const resource = fc
  .record({
    type: fc.constantFrom(...KINDS),
    name: fc.constantFrom(...NAMES),
    metadata: fc.dictionary(fc.constantFrom('namespace', 'labels', 'annotations'), anything),
    rest: fc.dictionary(fc.constantFrom('spec', 'subjects', 'roleRef', 'rules', 'data', 'template'), anything),
  })
  .map(({ type: [apiVersion, kind], name, metadata, rest }) =>
    Resource.from({ apiVersion, kind, metadata: { name, ...metadata }, ...rest }).toText(),
  );

test.each(RUNS.map((entry) => [entry[0].name, entry] as const))(
  '%s takes resources of any shape, and changes nothing the second time',
  (_, entry) => {
    fc.assert(
      fc.property(fc.array(resource, { minLength: 1, maxLength: 4 }), (texts) => {
        let first: ReturnType<typeof run>;
        try {
          first = run(entry, texts);
        } catch (error) {
          expect(isSluiceError(error, 'InvalidInput'), String(error)).toBe(true);
          return;
        }
        expect(run(entry, first.texts).texts).toEqual(first.texts);
      }),
      { numRuns: runs(150, 3) },
    );
  },
);

test('real packages change once, and keep their comments', skipFor(corpusMissing), () => {
  const packages = corpusPackages();
  const step = Math.ceil(packages.length / runs(packages.length, 3));
  for (const { files } of packages.filter((_, index) => index % step === 0)) {
    const texts = new Map([...files].map(([path, data]) => [path, data.toString('utf8')]));
    const { resources } = readResources(texts);
    const package_ = resources.map((item) => item.toText());
    for (const entry of RUNS.slice(0, 7)) {
      const { texts: once } = run(entry, package_);
      expect(run(entry, once).texts).toEqual(once);
      for (const [at, text] of package_.entries()) {
        for (const line of text.split('\n')) if (/^\s*#/.test(line)) expect(once[at]).toContain(line);
      }
    }
  }
});
