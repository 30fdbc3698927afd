import { expect, test } from 'vitest';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { send, startTestServer, WIDGETS, widgetBody } from '../testing.ts';

test('an empty type is an absent one, and another type is refused', async () => {
  const api = await startTestServer();
  try {
    const post = async (type: object, name: string) => {
      return (await send(api, 'POST', WIDGETS, { ...widgetBody(name), ...type })).status;
    };
    expect(await post({ apiVersion: '', kind: '' }, 'a')).toBe(201);
    expect(await post({ kind: '' }, 'b')).toBe(201);
    expect(await post({ kind: 'Gadget' }, 'c')).toBe(400);
    expect(await post({ apiVersion: 'v2' }, 'd')).toBe(400);
  } finally {
    await api.stop();
  }
});

test('the status of an object that a newer rule refuses is written, and the object itself is not', async () => {
  const api = await startTestServer({}, [packageVariantSetKind as Kind]);
  try {
    const { apiVersion, kind } = packageVariantSetKind;
    const template = { downstream: { packageExpr: 'target.package + 1' } };
    const target = { repositories: [{ name: 'edge' }], template };
    const spec = { upstream: { repo: 'blueprints', package: 'web' }, targets: [target], maxTargets: 10 };
    const metadata = { name: 'fleet', namespace: 'default' };
    const storage = api.registry.storage(packageVariantSetKind as Kind);
    const set = await storage.create({ actor: { name: 'x' }, face: 'cli' }, {
      apiVersion,
      kind,
      metadata,
      spec,
    } as never);
    const path = `/apis/${apiVersion}/namespaces/default/packagevariantsets/fleet`;
    const status = { observedGeneration: 1 };
    const body = { ...set, status, spec: { ...spec, maxTargets: 20 } };
    const written = await send(api, 'PUT', `${path}/status`, body);
    expect([written.status, await written.json()]).toEqual([200, expect.objectContaining({ spec, status })]);
    const { metadata: current } = await storage.get({ actor: { name: 'x' }, face: 'cli' }, metadata);
    const refused = await send(api, 'PUT', path, { ...body, metadata: current });
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('no matching overload')]);
  } finally {
    await api.stop();
  }
});
