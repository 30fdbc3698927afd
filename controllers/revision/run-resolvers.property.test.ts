import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import type { Renderer, Rendering } from '../../src/package/plan/ports/renderer.ts';
import type { Resolution, Resolver } from '../../src/package/plan/ports/resolver.ts';
import { runs } from '../../test/support/runs.ts';
import { MAX_ROUNDS } from './run-resolvers.ts';
import { draftOf, KPTFILE, resolverOf, runOf, textOf } from './testing.ts';

const edit = (path: string, text: string | null): Resolution => ({ edits: new Map([[path, text]]) });
const given = (type: string, status: 'True' | 'False' = 'True') => ({ type, status, reason: 'Test' }) as const;
const conditionOnly = (name: string, status: 'True' | 'False' = 'True'): Resolution => ({
  conditions: [given(`test.dev/${name}`, status)],
});

describe('runResolvers', () => {
  test('each resolver gets the edits of earlier ones, including objects and conditions', async () => {
    const seen: unknown[] = [];
    const outcome = await runOf(draftOf({}), [
      resolverOf('a', () => ({
        ...edit('a.yaml', 'apiVersion: v1\nkind: A\nmetadata: {name: x}\n'),
        ...conditionOnly('a'),
      })),
      resolverOf('b', ({ objects, conditions }) => {
        seen.push([objects.map(({ kind }) => kind), conditions.get('test.dev/a')?.status]);
        return { ...conditionOnly('b', 'False'), gates: ['test.dev/b'] };
      }),
    ]);
    expect(seen[0]).toEqual([['A'], 'True']);
    expect(outcome.unsettled).toBeUndefined();
    expect(outcome.applicable).toEqual(['a', 'b']);
    expect([...outcome.reported]).toEqual(['a', 'b']);
    expect(textOf(outcome, 'Kptfile')).toContain('- conditionType: test.dev/b');
  });

  test('a resolver without a result costs one round', async () => {
    const calls: string[] = [];
    await runOf(draftOf({}), [
      resolverOf('a', () => ({}), { calls }),
      resolverOf('b', () => edit('x', null), { calls }),
    ]);
    expect(calls).toEqual(['a', 'b']);
  });

  test('a resolver that never stops appending is stopped, and reported with its file', async () => {
    const calls: string[] = [];
    const grow = resolverOf('grow', ({ files }) => edit('n.txt', `${files.get('n.txt') ?? ''}-1`), { calls });
    const outcome = await runOf(draftOf({}), [grow]);
    expect(outcome.unsettled?.changes).toBe('grow changes n.txt');
    expect(calls).toHaveLength(MAX_ROUNDS + 1);
  });

  test('a resolver with different results each time is stopped', async () => {
    let turn = 0;
    const dice = resolverOf('dice', () => ({ conditions: [{ ...given('test.dev/dice'), message: `${turn++}` }] }));
    expect((await runOf(draftOf({}), [dice])).unsettled?.changes).toBe('dice changes condition test.dev/dice');
  });

  test('two that undo each other within a round settle on the result of the later one', async () => {
    const outcome = await runOf(draftOf({ x: 'old' }), [
      resolverOf('a', () => edit('x', 'a')),
      resolverOf('b', () => edit('x', 'b')),
    ]);
    expect(outcome.unsettled).toBeUndefined();
    expect(textOf(outcome, 'x')).toBe('b');
    expect(outcome.contributions.files.get('x')).toEqual(['a', 'b']);
  });

  test('a resolver that waits is skipped until the condition is True, and has not reported', async () => {
    const calls: string[] = [];
    const late = resolverOf('late', () => conditionOnly('late'), {
      waitsFor: ['test.dev/early', 'test.dev/human'],
      calls,
    });
    const early = (status: 'True' | 'False') => resolverOf('early', () => conditionOnly('early', status), { calls });
    const waiting = await runOf(draftOf({}), [late, early('False')]);
    expect(calls).not.toContain('late');
    expect(waiting.waiting).toEqual(new Map([['late', ['test.dev/early', 'test.dev/human']]]));
    expect([...waiting.reported]).toEqual(['early']);
    expect(waiting.applicable).toEqual(['early', 'late']);

    const kptfile = `${KPTFILE}status:\n  conditions:\n  - type: test.dev/human\n    status: "True"\n`;
    const verdict = { ...given('test.dev/human'), by: 'anna', face: 'cli', at: '', since: '' };
    const fresh = draftOf(
      { Kptfile: kptfile },
      { record: { verdicts: [{ ...verdict, inputs: { 'file:x': 'absent' } }] } },
    );
    expect([...(await runOf(fresh, [late, early('True')])).reported]).toEqual(['early', 'late']);
    // A True that was issued for other inputs does not count, nor one whose inputs are unknown.
    const stale = draftOf(
      { Kptfile: kptfile, x: '1' },
      { record: { verdicts: [{ ...verdict, inputs: { 'file:x': 'absent' } }] } },
    );
    expect([...(await runOf(stale, [late, early('True')])).reported]).toEqual(['early']);
    expect([...(await runOf(draftOf({ Kptfile: kptfile }), [late, early('True')])).reported]).toEqual(['early']);
  });

  test('a prefix is met if all of it is True and every resolver that could add to it has reported', async () => {
    const late = resolverOf('late', () => conditionOnly('late'), { waitsFor: ['ip/*'] });
    const ip = (resolution: Resolution, options: Partial<Resolver> = {}) =>
      resolverOf('ip', () => resolution, { claims: ['ip/*'], ...options });
    const reported = async (other: Resolver) => [...(await runOf(draftOf({}), [late, other])).reported];
    expect(await reported(ip({}))).toEqual(['ip', 'late']);
    expect(await reported(ip({ conditions: [given('ip/a'), given('ip/b')] }))).toEqual(['ip', 'late']);
    expect(await reported(ip({ conditions: [given('ip/a'), given('ip/b', 'False')] }))).toEqual(['ip']);
    expect(await reported(ip({}, { waitsFor: ['test.dev/unclaimed'] }))).toEqual([]);
    expect(await reported(ip({}, { applies: () => false }))).toEqual(['late']);
  });

  test('the conditions of a resolver that throws become False, without its secrets, and the others continue', async () => {
    const calls: string[] = [];
    const kptfile = `${KPTFILE}info:\n  readinessGates:\n  - conditionType: ip/gated\nstatus:\n  conditions:\n  - type: ip/old\n    status: "True"\n`;
    const bad = resolverOf(
      'bad',
      () => {
        throw new Error('GET https://joe:hunter2@ipam/?token=abc failed\n    at secret.ts:1');
      },
      { claims: ['ip/*', 'exact'], calls },
    );
    const outcome = await runOf(draftOf({ Kptfile: kptfile }), [
      bad,
      resolverOf('good', () => conditionOnly('good'), { calls }),
    ]);
    const { conditions } = outcome.package.subject;
    const closed = {
      status: 'False',
      reason: 'ResolverFailed',
      message: 'resolver bad: GET https://***@ipam/?token=*** failed',
    };
    for (const type of ['ip/old', 'ip/gated', 'exact']) expect(conditions.get(type)).toEqual({ type, ...closed });
    expect(conditions.get('test.dev/good')?.status).toBe('True');
    expect(calls.filter((name) => name === 'bad')).toHaveLength(1);
    expect([...outcome.reported]).toEqual(['good']);
    expect(outcome.unsettled).toBeUndefined();
  });

  const trespasses: [string, Resolution, RegExp][] = [
    ['the Kptfile', edit('Kptfile', 'x'), /resolver bad edited the Kptfile/],
    ['a path outside', edit('../x', 'x'), /resolver bad edited .*"..\/x"/],
    ["Git's own folder", edit('a/.git/config', 'x'), /resolver bad edited/],
    [
      "another resolver's condition",
      { conditions: [given('test.dev/other')] },
      /returned condition test.dev\/other, which it does not claim/,
    ],
    ['a withdrawal', { withdraw: ['test.dev/other'] }, /returned condition test.dev\/other/],
    ['unknown inputs', { conditions: [{ ...given('test.dev/bad'), inputs: ['world'] }] }, /"world" names no input/],
    ['an invalid status', { conditions: [{ type: 'test.dev/bad', status: 'Maybe' as 'True' }] }, /status/],
    ['an empty gate', { gates: [''] }, /./],
    ['an invalid wait', { requeueAfter: Number.NaN }, /NaN milliseconds/],
  ];
  test.each(trespasses)(
    '%s is refused with the name of the resolver, and no part of the result is applied',
    async (_what, resolution, message) => {
      const outcome = await runOf(draftOf({}), [resolverOf('bad', () => ({ ...edit('ok.txt', 'x'), ...resolution }))]);
      expect(outcome.failures.map((failure) => failure.resolver)).toEqual(['bad']);
      expect(outcome.failures[0]?.message).toMatch(message);
      expect(textOf(outcome, 'ok.txt')).toBeUndefined();
      expect([...outcome.package.subject.conditions.keys()]).toEqual(['test.dev/bad']);
    },
  );

  test('a resolver without a response fails alone; aborting the run fails all of it', async () => {
    const clock = new ManualClock();
    const hang = resolverOf('hang', () => new Promise(() => undefined));
    const good = resolverOf('z', () => conditionOnly('z'));
    const running = runOf(draftOf({}), [hang, good], { clock, timeout: 500 });
    await settle();
    clock.advance(500);
    const outcome = await running;
    expect(outcome.failures[0]?.message).toBe('no result within 500 ms');
    expect([...outcome.reported]).toEqual(['z']);
    expect(clock.pending).toBe(0);

    const stop = new AbortController();
    const given = runOf(draftOf({}), [hang], { clock, context: { now: 0, signal: stop.signal } });
    stop.abort(new Error('stopping'));
    await expect(given).rejects.toThrow('stopping');
  });

  test('the renderer runs first, may return any condition, and prevents the resolvers if it fails', async () => {
    const calls: string[] = [];
    const a = resolverOf('a', ({ files }) => edit('out', `${files.get('rendered')} a`), { calls });
    const renderer = {
      render: async () => ({ kptfile: [], ...edit('rendered', 'r'), conditions: [given('Rendered')] }),
    };
    const outcome = await runOf(draftOf({}), [a], { renderer });
    expect(textOf(outcome, 'out')).toBe('r a');
    expect([outcome.applicable, [...outcome.reported]]).toEqual([['a'], ['render', 'a']]);

    calls.length = 0;
    const broken = { render: () => Promise.reject(new Error('no worker')) };
    const failed = await runOf(draftOf({}), [a], { renderer: broken });
    expect(calls).toEqual([]);
    // It is retried, so no condition is written about the package.
    expect(failed.failures).toMatchObject([{ resolver: 'render', message: 'no worker' }]);
    expect([...failed.package.subject.conditions.keys()]).toEqual([]);
  });

  test('a package that cannot be rendered is not evaluated; where functions cannot be run, resolvers still run', async () => {
    const calls: string[] = [];
    const a = resolverOf('a', () => ({}), { calls });
    const broken: Rendering = {
      kptfile: [],
      conditions: [{ type: 'Rendered', status: 'False', reason: 'RenderFailed', message: 'x' }],
      failure: 'x',
    };
    let renders = 0;
    const render = async () => {
      renders += 1;
      return broken;
    };
    const failed = await runOf(draftOf({}), [a], { renderer: { render } });
    // Its functions may have used all of their time.
    expect(renders).toBe(1);
    expect([calls, failed.renderFailure, [...failed.reported]]).toEqual([[], 'x', []]);
    expect(failed.failures).toEqual([]);
    expect(failed.package.subject.conditions.get('Rendered')).toMatchObject({ status: 'False' });
    const unavailable = { ...broken, unavailable: true };
    const left = await runOf(draftOf({}), [a], { renderer: { render: async () => unavailable } });
    expect([new Set(calls), left.renderFailure, [...left.reported]]).toEqual([new Set(['a']), 'x', ['a']]);
  });

  test('a pipeline that does not settle is reported separately, with its last change', async () => {
    const render: Renderer['render'] = async ({ files }) => ({
      kptfile: [],
      ...edit('n.yaml', `n: ${files.get('n.yaml')?.toString().length ?? 0}${files.get('n.yaml') ?? ''}`),
    });
    const outcome = await runOf(draftOf({}), [], { renderer: { render } });
    expect(outcome.unsettled?.changes).toBe('render changes n.yaml');
    expect(outcome.unsettled?.pipeline).toMatch(/^n\.yaml: -n: .*\nn\.yaml: \+n: /);
    const both = resolverOf('b', ({ files }) => edit('n.yaml', `${files.get('n.yaml')}.`));
    const fight = await runOf(draftOf({}), [both], { renderer: { render } });
    expect(fight.unsettled).toEqual({ changes: 'render and b changes n.yaml', pipeline: undefined });
    let times = 0;
    const toggling = async () => ({
      kptfile: [],
      conditions: [{ type: 'x', status: times++ % 2 === 0 ? 'True' : 'False' } as const],
    });
    const toggled = await runOf(draftOf({}), [], { renderer: { render: toggling } });
    expect(toggled.unsettled?.pipeline).toBe('render changes condition x');
  });

  test('a package without functions counts as rendered, with a condition if a gate requires it', async () => {
    const renderer = { render: async () => undefined };
    const silent = await runOf(draftOf({}), [], { renderer });
    expect(silent.contributions.conditions.size).toBe(0);
    const gate = { conditionType: 'Rendered', approveOnly: false, policy: 'p' };
    const asked = draftOf({}, { policy: { requiredGates: [gate] } });
    const outcome = await runOf(asked, [], { renderer });
    expect(outcome.contributions.conditions.get('Rendered')).toMatchObject({ by: 'render', given: { status: 'True' } });
    expect(outcome.unsettled).toBeUndefined();
    // Without a renderer, functions are not rendered.
    const left = draftOf({ 'sub/Kptfile': 'kind: [' }, { policy: { requiredGates: [gate] } });
    expect((await runOf(left, [], { renderer })).contributions.conditions.size).toBe(0);
  });

  test('a policy decides which conditions a pipeline may issue', async () => {
    const policy = { givers: [{ conditionType: 'review', actors: ['anna'], policy: 'p' }] };
    const render = async () => ({
      kptfile: [],
      conditions: [given('review'), given('Rendered'), given('open')],
      withdraw: ['review'],
    });
    const outcome = await runOf(draftOf({}, { policy }), [], { renderer: { render } });
    expect([...outcome.contributions.conditions.keys()]).toEqual(['Rendered', 'open']);
    const why = expect.stringContaining(
      'controller:render: policy p permits only anna to set review; push may have changed',
    );
    expect(outcome.refused).toEqual([why, why]);
  });

  test('a renderer and a resolver that depend on the result of each other settle', async () => {
    // As with interfaces and claims: the pipeline creates the claim, the resolver fills it, the pipeline uses the value.
    const renderer = {
      render: async ({ files }: Parameters<Renderer['render']>[0]) => ({
        kptfile: [],
        edits: new Map([
          ['claim', files.get('claim')?.toString() ?? 'wanted'],
          ['use', files.get('claim')?.toString() === 'filled' ? 'filled' : 'empty'],
        ]),
      }),
    };
    const fill = resolverOf('fill', () => ({ ...edit('claim', 'filled'), ...conditionOnly('fill') }), {
      applies: ({ files }) => files.has('claim'),
    });
    const outcome = await runOf(draftOf({}), [fill], { renderer });
    expect(outcome.unsettled).toBeUndefined();
    expect(textOf(outcome, 'use')).toBe('filled');
  });

  test('the shortest requested wait counts', async () => {
    const wait = (name: string, requeueAfter: number) => resolverOf(name, () => ({ requeueAfter }));
    expect((await runOf(draftOf({}), [wait('a', 500), wait('b', 200), resolverOf('c', () => ({}))])).requeueAfter).toBe(
      200,
    );
  });

  /** A resolver that reads some cells, each a file with a digit, and writes one. */
  const machine = fc.record({
    reads: fc.array(fc.nat(2), { maxLength: 2 }),
    writes: fc.nat(2),
    table: fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
  });
  test('property: a run settles exactly if the composed step does, and then another run changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(machine, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
        async (machines, start) => {
          const next = (cells: readonly number[], { reads, table }: (typeof machines)[number]) => {
            let sum = 0;
            for (const cell of reads) sum += cells[cell] ?? 0;
            return table[sum % 4] ?? 0;
          };
          const calls: string[] = [];
          const resolvers = machines.map((each, index) =>
            resolverOf(
              `r${index}`,
              ({ files }) => {
                const cells = [0, 1, 2].map((cell) => Number(files.get(`c${cell}`)));
                return edit(`c${each.writes}`, String(next(cells, each)));
              },
              { calls },
            ),
          );
          // The model: a list of numbers, with all machines applied in order for as many rounds as the runner.
          const states = [start];
          while (states.length <= MAX_ROUNDS + 1) {
            const cells = [...(states.at(-1) ?? [])];
            for (const each of machines) cells[each.writes] = next(cells, each);
            const quiet = String(cells) === String(states.at(-1));
            states.push(cells);
            if (quiet) break;
          }
          const quiet = String(states.at(-1)) === String(states.at(-2));
          const cellsOf = (cells: readonly number[]) =>
            Object.fromEntries(cells.map((value, cell) => [`c${cell}`, String(value)]));
          const outcome = await runOf(draftOf(cellsOf(start)), resolvers);
          expect(outcome.unsettled === undefined).toBe(quiet);
          expect(calls).toEqual(states.slice(1).flatMap(() => machines.map((_each, index) => `r${index}`)));
          expect([0, 1, 2].map((cell) => Number(textOf(outcome, `c${cell}`)))).toEqual(states.at(-1));
          if (!quiet) return;
          const again = await runOf(draftOf(cellsOf(states.at(-1) ?? [])), resolvers);
          expect(again.package.changedSince(outcome.package.subject.files)).toEqual([]);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
