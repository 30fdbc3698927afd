import { describe, expect, test } from 'vitest';
import { type Answer, APPLY_PATCH, JSON_PATCH, type KubeObject } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { whyNoPackages } from './support/packages.ts';
import { made, type Place, usePlace } from './support/place.ts';
import { definedKind, packageKind, type Subject } from './support/subjects.ts';

interface Situation {
  readonly place: Place;
  readonly subject: Subject;
  /** An object that exists. */
  readonly live: KubeObject;
  readonly path: string;
}

/** The status codes of a defined kind on a kube-apiserver, of one on `sluice up`, and of package revisions on both. */
type Codes = readonly [kubeApiserver: number, defined: number, packages: number];

/** The rows of docs/api-server.md that have a status code. A change of this table is a change of that page. */
const ROWS: readonly (readonly [string, Codes, (at: Situation) => Promise<Answer>])[] = [
  [
    'create with a resourceVersion',
    [500, 400, 201],
    ({ place, subject }) => place.api.post(subject.path(), subject.body('versioned', { resourceVersion: '1' })),
  ],
  [
    'get with a resourceVersion that is not a number',
    [500, 400, 400],
    ({ place, path }) => place.api.get(`${path}?resourceVersion=abc`),
  ],
  [
    'apply of an unknown field',
    [500, 422, 422],
    ({ place, path, live }) =>
      place.api.patch(`${path}?fieldManager=a`, { ...identity(live), nothing: 1 }, APPLY_PATCH),
  ],
  [
    'apply of YAML with a repeated key',
    [200, 400, 400],
    ({ place, path, live }) => {
      const { apiVersion, kind, metadata } = identity(live);
      const yaml = `apiVersion: ${apiVersion}\nkind: ${kind}\nkind: ${kind}\nmetadata:\n  name: ${metadata.name}\n`;
      return place.api.patch(`${path}?fieldManager=a`, yaml, APPLY_PATCH);
    },
  ],
  [
    'JSON patch with an unknown op',
    [422, 400, 400],
    ({ place, path }) => place.api.patch(path, [{ op: 'swap', path: '/metadata/labels' }], JSON_PATCH),
  ],
  ['patch that changes the kind', [422, 400, 400], ({ place, path }) => place.api.patch(path, { kind: 'Other' })],
  [
    'patch that changes the uid',
    [422, 409, 409],
    ({ place, path }) => place.api.patch(path, { metadata: { uid: '00000000-0000-0000-0000-000000000000' } }),
  ],
  [
    'create without a kind',
    [400, 201, 201],
    ({ place, subject }) => place.api.post(subject.path(), { ...subject.body('no-kind'), kind: undefined }),
  ],
  [
    'create of another kind than that of the path',
    [422, 400, 400],
    ({ place, subject }) => place.api.post(subject.path(), { ...subject.body('other'), kind: 'Other' }),
  ],
  [
    'create at the path of an object',
    [201, 405, 405],
    ({ place, subject }) => place.api.post(subject.path('any'), subject.body('named')),
  ],
  ['update at the path of a list', [400, 405, 405], ({ place, subject, live }) => place.api.put(subject.path(), live)],
  [
    'update without a resourceVersion',
    [422, 422, 200],
    ({ place, path, live }) => {
      const { resourceVersion: _none, ...metadata } = live.metadata;
      return place.api.put(path, { ...live, metadata });
    },
  ],
];

function identity({ apiVersion, kind, metadata: { name } }: KubeObject) {
  return { apiVersion, kind, metadata: { name } };
}

describe.each([
  ['a defined kind', definedKind, undefined],
  ['package revisions', packageKind, await whyNoPackages()],
] as const)('%s differs in', (_, subjectOf, missing) => {
  describe('requests', skipFor(missing), () => {
    const place = usePlace();
    const subject = subjectOf(place);

    test.each(ROWS)('%s', async (what, [kubeApiserver, defined, packages], send) => {
      const name = what.toLowerCase().replaceAll(/\W+/g, '-');
      const live = made(await place.api.post(subject.path(), subject.body(name)));
      const { status, text } = await send({ place, subject, live, path: subject.path(subject.nameOf(name)) });
      const isSluice = (await place.api.get('/version')).text.includes('sluice');
      const expected = subjectOf === packageKind ? packages : isSluice ? defined : kubeApiserver;
      expect({ status, text }).toMatchObject({ status: expected });
    });
  });
});
