import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { Driver, type Step } from './testing/driver.ts';
import { PACKAGE } from './testing/package-data.ts';
import { ACTIONS, type Decision } from './types.ts';

const SEQUENCES = runs(100_000);
/** The rarest outcome comes about more often than this; of few sequences it is enough that there is one. */
const RARE = SEQUENCES === 100_000 ? 300 : 0;
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
  demand(decision.plan.length > 0, 'an allowed request does nothing', action);
  const enforced = driver.world.policy.enforcement === 'enforce';
  demand(!enforced || decision.bypassed.length === 0, 'gates bypassed although enforced');
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
  demand(!enforced || request.open, 'published with a closed gate', target);
  demand(
    enforced || request.open === (decision.bypassed.length === 0),
    'bypassed gates are not told',
    decision.bypassed,
  );
}

function sameRefs(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return a.size === b.size && [...a].every(([ref, oid]) => b.get(ref) === oid);
}

describe('the kernel against its model', () => {
  const seen = {
    sequences: 0,
    requests: 0,
    bypassed: 0,
    codes: new Map<string, number>(),
    done: new Map<string, number>(),
  };

  function count(decision: Decision, action: string): void {
    seen.requests += 1;
    if (decision.allowed) {
      seen.done.set(action, (seen.done.get(action) ?? 0) + 1);
      if (decision.bypassed.length > 0) seen.bypassed += 1;
    } else for (const { code } of decision.refusals) seen.codes.set(code, (seen.codes.get(code) ?? 0) + 1);
  }

  test(`${SEQUENCES} random sequences of requests, edits and pushes`, { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(seed, fc.array(seed, { minLength: 4, maxLength: 20, size: 'max' }), (start, steps) => {
        seen.sequences += 1;
        const driver = new Driver(start, true);
        for (const next of steps) {
          const before = new Map(driver.world.refs);
          const { request } = driver.step(next);
          checkRefs(driver);
          checkPlaces(driver);
          if (request === undefined) continue;
          checkRequest(driver, request, before);
          count(request.decision, request.action);
        }
      }),
      { numRuns: SEQUENCES },
    );
    expect(seen.sequences).toBeGreaterThanOrEqual(SEQUENCES);
    // The sequences came everywhere: each action and each refusal is met in more than three of a thousand.
    expect([...seen.done.keys()].sort()).toEqual([...ACTIONS].sort());
    expect([...seen.codes.keys()].sort()).toEqual([
      'Conflict',
      'GateUnmet',
      'InUse',
      'NestedPackage',
      'NotAllowed',
      'Unreadable',
      'VerdictStale',
      'WrongState',
    ]);
    for (const times of [...seen.done.values(), ...seen.codes.values(), seen.bypassed])
      expect(times).toBeGreaterThan(RARE);
  });
});
