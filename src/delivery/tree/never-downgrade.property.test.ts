import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { settingsOf } from '../delivery-target.ts';
import {
  type DeliveredRevision,
  type PublishedRevision,
  packageKey,
  selectRevisions,
} from '../selection/select-revisions.ts';
import { BranchFiles, type PresentFile } from './branch-files.ts';
import { desired } from './desired.ts';
import type { DesiredRevision } from './desired-result.ts';
import { manifestsOf } from './manifests.ts';

/*
 * Random histories of one package: revisions are published in and out of band, lose and regain trust, vanish, are deleted properly,
 * pinned and selected; the target delivers in between, and loses its status as after a restart. The revision in its branch never decreases
 * by itself.
 */

type Trust = 'trusted' | 'Unverified' | 'RevokedKey' | 'NotAnApproval';

interface World {
  readonly published: Map<number, Trust>;
  readonly deleted: Set<number>;
  branch: Map<string, PresentFile>;
  status: number | undefined;
  pin: number | undefined;
  rollback: { readonly from: number; readonly to: number } | undefined;
  isSelected: boolean;
  areLabelsKnown: boolean;
}

type Step =
  | { readonly type: 'publish'; readonly trust: Trust }
  | { readonly type: 'trust'; readonly nth: number; readonly trust: Trust }
  | { readonly type: 'vanish' | 'delete'; readonly nth: number }
  | { readonly type: 'pin'; readonly nth: number | undefined }
  | { readonly type: 'rollback'; readonly nth: number | undefined }
  | { readonly type: 'select' | 'labels'; readonly value: boolean }
  | { readonly type: 'deliver' | 'restart' | 'removeFolder' };

// Mostly trusted, so that many deliveries can lose their trust.
const trust = fc.constantFrom<Trust>('trusted', 'trusted', 'trusted', 'Unverified', 'RevokedKey', 'NotAnApproval');
/** Counted from the highest revision. */
const nth = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Step>({ type: 'deliver' }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('publish' as const), trust }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('trust' as const), nth, trust }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('vanish' as const, 'delete' as const), nth }) },
  fc.record({ type: fc.constant('pin' as const), nth: fc.option(nth, { nil: undefined }) }),
  fc.record({ type: fc.constant('rollback' as const), nth: fc.option(nth, { nil: undefined }) }),
  fc.record({ type: fc.constantFrom('select' as const, 'labels' as const), value: fc.boolean() }),
  fc.constant<Step>({ type: 'restart' }),
  fc.constant<Step>({ type: 'removeFolder' }),
);

const PACKAGE = { repository: 'packages', package: 'web' };

function applyStep(world: World, step: Step): void {
  const { published, deleted } = world;
  const pick = (nth: number) => [...published.keys()].sort((a, b) => b - a)[nth];
  if (step.type === 'publish') {
    const number = Math.max(0, ...published.keys(), ...deleted) + 1;
    published.set(number, step.trust);
  } else if (step.type === 'trust') {
    const number = pick(step.nth);
    if (number !== undefined) published.set(number, step.trust);
  } else if (step.type === 'vanish' || step.type === 'delete') {
    const number = pick(step.nth);
    if (number === undefined) return;
    published.delete(number);
    if (step.type === 'delete') deleted.add(number);
  } else if (step.type === 'pin') world.pin = step.nth === undefined ? undefined : pick(step.nth);
  else if (step.type === 'rollback') {
    const [from, to] = step.nth === undefined ? [] : [pick(0), pick(step.nth + 1)];
    world.rollback = from === undefined || to === undefined ? undefined : { from, to };
  } else if (step.type === 'select') world.isSelected = step.value;
  else if (step.type === 'labels') world.areLabelsKnown = step.value;
  else if (step.type === 'restart') world.status = undefined;
  else if (step.type === 'removeFolder') world.branch = new Map();
  else deliver(world);
}

function deliver(world: World): void {
  const pins = world.pin === undefined ? [] : [{ ...PACKAGE, revision: world.pin }];
  const spec = { selector: {}, git: { repo: 'file:///x.git' }, pins, allowPrune: true };
  const { rollback } = world;
  const rollbacks = rollback && [{ ...PACKAGE, ...rollback, time: '2026-01-01T00:00:00Z', reason: 'Degraded' }];
  const status = rollbacks === undefined ? {} : { status: { rollbacks } };
  const target = settingsOf({ ...deliveryTargetKind.complete({ metadata: { name: 'edge' }, spec }), ...status });
  const before = heldBy(world);
  const revisions = [...world.published].map(
    ([revision, trust]): PublishedRevision => ({
      ...{ ...PACKAGE, revision },
      ...(trust === 'trusted' ? {} : { outOfBand: { reason: trust, message: 'it does not count' } }),
    }),
  );
  const delivered: DeliveredRevision[] = [];
  const known = before ?? world.status;
  // The caller handles a selector that excludes the package by its name.
  if (known !== undefined && world.isSelected)
    delivered.push({ ...PACKAGE, revision: known, hasFolder: before !== undefined });
  const { chosen, blocked } = selectRevisions(target, world.isSelected ? revisions : [], {
    delivered: new Map(delivered.map((one) => [packageKey(one), one])),
    isSelected: () => (world.areLabelsKnown ? true : undefined),
    isDeleted: ({ revision }) => world.deleted.has(revision),
  });
  const wanted = [
    ...chosen.map((one) => desiredOf(one.revision, undefined)),
    ...blocked.map((refused) => desiredOf(refused.revision ?? 0, refused)),
  ];
  const { edits, packages } = desired(target, wanted, world.branch);
  const present = new Map(world.branch);
  for (const [path, data] of edits) {
    if (data === null) present.delete(path);
    else present.set(path, { oid: blobId(data), data });
  }
  if (blocked.length > 0) expect(edits.size, 'a held package stays unchanged').toBe(0);
  world.branch = present;
  world.status = packages[0]?.revision ?? (blocked.length > 0 ? known : undefined);

  const after = heldBy(world);
  if (after === before) return;
  if (after !== undefined)
    expect(world.published.get(after), 'only publications that count are delivered').toBe('trusted');
  if (known === undefined || (after !== undefined && after >= known)) return;
  const isRolledBack =
    rollback?.to === after && world.pin === undefined && rollback?.from === Math.max(...world.published.keys());
  const isExplicit = world.deleted.has(known) || !world.isSelected || world.pin === after || isRolledBack;
  expect(isExplicit, `v${known} went back to v${after}`).toBe(true);
}

function desiredOf(revision: number, refused: { reason: string; message: string } | undefined): DesiredRevision {
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  revision: v${revision}\n`;
  const built =
    refused === undefined
      ? manifestsOf(new Map([['cm.yaml', new TextEncoder().encode(text)]]))
      : { refused: refused as NonNullable<NonNullable<DesiredRevision['built']>['refused']> };
  return { ...PACKAGE, revision, sourceCommit: 'c', sourceTree: 't', gates: [], built };
}

function heldBy({ branch }: World): number | undefined {
  return [...BranchFiles.of('', branch).owners.values()][0]?.revision;
}

function blobId(data: Uint8Array): string {
  return createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');
}

test('property: the delivered version decreases only by a deletion, a pin, a rollback or a change of the selector', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 40 }), (steps) => {
      const world: World = {
        ...{ published: new Map(), deleted: new Set<number>(), branch: new Map() },
        ...{ status: undefined, pin: undefined, rollback: undefined, isSelected: true, areLabelsKnown: true },
      };
      for (const one of steps) applyStep(world, one);
      deliver(world);
    }),
    { numRuns: runs(5000) },
  );
});
