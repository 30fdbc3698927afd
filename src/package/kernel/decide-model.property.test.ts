import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { ACTIONS, type Decision } from '../model/revision/revision-state.ts';
import { Driver, type Step } from './testing/driver.ts';
import { PACKAGE } from './testing/package-data.ts';

/** `SLUICE_MODEL_SEQUENCES` names another number, for those who want to wait. */
const SEQUENCES = Number(process.env.SLUICE_MODEL_SEQUENCES ?? runs(100_000));
/** Fewer sequences may miss a rare refusal or attack. */
const COME_EVERYWHERE = SEQUENCES >= 100_000;
/** Every kind of attack that came about this often at least, for each 100,000 sequences. */
const MIN_TIMES = 100;
const ATTACKS = [
  'copied shared commit',
  'lost ledger',
  'moved tag',
  'plain tag',
  'record of a foreign key',
  'record of a revoked key',
  'record of another repository',
  'record of another revision',
  'record with a broken signature',
  'removed record',
  'replayed record',
  'replayed tag',
  'revoked key',
  'subverted proposal',
  'tag of a foreign key',
  'tag of a revoked key',
  'tag of another repository',
  'tag with a broken signature',
  'tag with a copied signature',
  'tag with a copied statement',
  'tag with the statement of another package',
  'unsigned record',
  'unsigned tag',
];
// Without bias: small numbers are no simpler steps than large ones, and would all be the same few.
const seed = fc.noBias(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));

/** Plain comparisons: matchers cost more than everything else here together. */
function demand(holds: boolean, what: string, details: unknown = ''): asserts holds {
  if (!holds) throw new Error(`${what} ${JSON.stringify(details)}`);
}

function checkRefs(driver: Driver): void {
  const expected = driver.model.refs();
  let packages = 0;
  for (const [ref, oid] of driver.world.refs) {
    if (ref.startsWith('refs/sluice/')) continue;
    packages += 1;
    demand(expected.get(ref) === oid, 'refs differ', [ref, oid, expected.get(ref)]);
  }
  demand(packages === expected.size, 'refs are missing', [[...driver.world.refs.keys()], [...expected.keys()]]);
}

/** Each revision stands at one place: no draft beside its proposed branch, no branch beside the tag that it became. */
function checkPlaces(driver: Driver): void {
  const names = driver.world.list().map(({ workspace }) => workspace);
  demand(new Set(names).size === names.length, 'a revision has two places', names);
}

function checkRequest(
  driver: Driver,
  request: NonNullable<Step['request']>,
  before: ReadonlyMap<string, string>,
): void {
  const { decision, against, action, target } = request;
  demand(decision.allowed === (against.size === 0), 'the model disagrees', {
    action,
    target,
    against: [...against],
    decision,
  });
  if (!decision.allowed) {
    demand(
      decision.refusals.length > 0 && decision.refusals.every(({ message }) => message !== ''),
      'refused without a reason',
    );
    const codes = new Set(decision.refusals.map(({ code }) => code));
    demand(codes.size === against.size && [...codes].every((code) => against.has(code)), 'other reasons', [
      [...codes],
      [...against],
    ]);
    demand(sameRefs(before, driver.world.refs), 'a refused request changed refs');
    return;
  }
  const { given, needed } = request.approvals;
  const isEnough = action !== 'approve' || given >= needed || request.isMerged;
  const isDecided = isEnough && action === 'approve' && request.isDecision;
  const isDone = isEnough && !isDecided;
  demand(isDone === (decision.approvals === undefined), 'approvals are counted otherwise', decision.approvals);
  demand(isDone === decision.plan.length > 0, 'an allowed request does nothing, or too much', action);
  demand(isDecided === (decision.approvals?.isDecided === true), 'a merge is decided otherwise', decision.approvals);
  if (decision.approvals !== undefined) {
    const counted = decision.approvals;
    demand(
      counted.given === Math.min(given, needed) && counted.needed === needed,
      'approvals are counted otherwise',
      counted,
    );
    demand(sameRefs(before, driver.world.refs), 'an approval that is not enough changed refs');
    return;
  }
  const enforced = driver.world.policy.enforcement === 'enforce';
  const brokeGlass = decision.brokeGlass === true;
  demand(brokeGlass === (enforced && action === 'approve' && request.mayBreakGlass), 'glass broken otherwise', action);
  const { isBypass } = request;
  demand(isBypass === (decision.mergeBypass !== undefined), 'a bypass is noted otherwise', decision.mergeBypass);
  demand(!enforced || brokeGlass || isBypass || decision.bypassed.length === 0, 'gates bypassed although enforced');
  const main = 'refs/heads/main';
  demand(
    !request.isMerged || before.get(main) === driver.world.refs.get(main),
    'a recorded merge moved the main branch',
  );
  const tags = (refs: ReadonlyMap<string, string>) => [...refs.keys()].filter((ref) => ref.startsWith('refs/tags/'));
  const added = tags(driver.world.refs).filter((ref) => !before.has(ref));
  if (action !== 'approve') {
    demand(added.length === 0, 'a tag without approval', added);
    return;
  }
  demand(
    added.length === 1 && added[0] === `refs/tags/dir/${PACKAGE}/v${request.nextNumber}`,
    'not the next number',
    added,
  );
  demand(!enforced || brokeGlass || isBypass || request.open, 'published with a closed gate', target);
  demand(
    (enforced && !brokeGlass && !isBypass) || request.open === (decision.bypassed.length === 0),
    'bypassed gates are not reported',
    decision.bypassed,
  );
}

/** What counts as published is what the kernel published, and what it published counts as long as nothing happened to it. */
function checkPublications({ world, model }: Driver): void {
  for (const { tag, commit } of world.list()) {
    if (tag === undefined) continue;
    const version = tag.slice(tag.lastIndexOf('/') + 1);
    const counts = model.records.inBand(version, commit) !== undefined;
    demand(world.store.isInBand(tag, commit) === counts, counts ? 'a publication does not count' : 'in band', tag);
  }
}

function sameRefs(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  const own = (refs: ReadonlyMap<string, string>) => [...refs].filter(([ref]) => !ref.startsWith('refs/sluice/'));
  return own(a).length === own(b).length && own(a).every(([ref, oid]) => b.get(ref) === oid);
}

describe('the kernel against its model', () => {
  const seen = {
    sequences: 0,
    requests: 0,
    bypassed: 0,
    brokeGlass: 0,
    pending: 0,
    merged: 0,
    shared: 0,
    mergeBypass: 0,
    decided: 0,
    judgedBefore: 0,
    attacks: new Map<string, number>(),
    codes: new Map<string, number>(),
    done: new Map<string, number>(),
  };

  function count(decision: Decision, { action, isShared }: NonNullable<Step['request']>): void {
    seen.requests += 1;
    if (decision.allowed) {
      seen.done.set(action, (seen.done.get(action) ?? 0) + 1);
      if (decision.bypassed.length > 0) seen.bypassed += 1;
      if (decision.brokeGlass === true) seen.brokeGlass += 1;
      if (decision.approvals?.isDecided === true) seen.decided += 1;
      else if (decision.approvals !== undefined) seen.pending += 1;
      if (decision.judgedAt !== undefined) seen.judgedBefore += 1;
      if (isShared && decision.plan.some(({ become }) => become.kind === 'approval')) seen.shared += 1;
      if (decision.plan.some(({ become }) => become.kind === 'statement')) {
        if (decision.mergeBypass === undefined) seen.merged += 1;
        else seen.mergeBypass += 1;
      }
    } else for (const { code } of decision.refusals) seen.codes.set(code, (seen.codes.get(code) ?? 0) + 1);
  }

  test(`${SEQUENCES} random sequences of requests, edits, pushes and forgeries`, {
    timeout: 60_000 + 20 * SEQUENCES,
  }, () => {
    fc.assert(
      fc.property(seed, fc.array(seed, { minLength: 6, maxLength: 24, size: 'max' }), (start, steps) => {
        seen.sequences += 1;
        const driver = new Driver(start, true);
        for (const next of steps) {
          const before = new Map(driver.world.refs);
          const { request, attack } = driver.step(next);
          if (attack !== undefined) seen.attacks.set(attack, (seen.attacks.get(attack) ?? 0) + 1);
          if (request !== undefined) checkRequest(driver, request, before);
          checkRefs(driver);
          checkPlaces(driver);
          checkPublications(driver);
          if (request !== undefined) count(request.decision, request);
        }
      }),
      { numRuns: SEQUENCES },
    );
    expect(seen.sequences).toBeGreaterThanOrEqual(SEQUENCES);
    if (!COME_EVERYWHERE) return;
    // The sequences came everywhere: each action and each refusal is met in more than three of a thousand.
    expect([...seen.done.keys()].sort()).toEqual([...ACTIONS].sort());
    expect([...seen.codes.keys()].sort()).toEqual([
      'ChangesRequested',
      'Conflict',
      'Conflicted',
      'GateUnmet',
      'InUse',
      'NestedPackage',
      'NotAllowed',
      'NotApproved',
      'NotMerged',
      'TagConflict',
      'Unreadable',
      'VerdictStale',
      'WrongState',
    ]);
    expect([...seen.attacks.keys()].sort()).toEqual(ATTACKS);
    const { done, codes, attacks, bypassed, brokeGlass, pending, merged, shared, mergeBypass, decided, judgedBefore } =
      seen;
    const counts = [bypassed, brokeGlass, pending, merged, shared, mergeBypass, decided, judgedBefore];
    const all = [...done.values(), ...codes.values(), ...attacks.values(), ...counts];
    expect(Math.min(...all)).toBeGreaterThan((MIN_TIMES * SEQUENCES) / 100_000);
  });
});
