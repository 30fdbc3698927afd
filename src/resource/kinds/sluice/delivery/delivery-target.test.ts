import { expect, test } from 'vitest';
import { deliveryTargetKind } from './delivery-target.ts';

const parse = (author: object) =>
  deliveryTargetKind.parse({
    ...{ apiVersion: deliveryTargetKind.apiVersion, kind: 'DeliveryTarget', metadata: { name: 'edge' } },
    spec: { selector: {}, git: { repo: 'https://git.example.com/edge.git', ...author } },
  });

test('the author of commits is one bounded line', () => {
  expect(() => parse({ author: 'Zoë Müller', email: 'zoe@example.com' })).not.toThrow();
  for (const author of [{ author: 'a\nSluice-Target: b' }, { email: 'a@b\r' }, { author: 'a'.repeat(257) }])
    expect(() => parse(author)).toThrow(/spec\.git\.(author|email)/);
});

test('a rollback without an engine, which could never act, is refused at its field', () => {
  const spec = { selector: {}, git: { repo: 'https://git.example.com/edge.git' }, rollback: { unhealthyAfter: '10m' } };
  const target = { apiVersion: deliveryTargetKind.apiVersion, kind: 'DeliveryTarget', metadata: { name: 'edge' } };
  expect(() => deliveryTargetKind.parse({ ...target, spec })).toThrow(/spec\.rollback.*needs spec\.engine/);
  expect(() => deliveryTargetKind.parse({ ...target, spec: { ...spec, engine: { type: 'Flux' } } })).not.toThrow();
});
