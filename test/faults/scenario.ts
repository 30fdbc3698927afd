import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';

const context: RequestContext = { actor: { name: 'victim' }, face: 'cli' };
const A1 = 'packages.a.v1';
const A2 = 'packages.a.v2';
const B1 = 'packages.b.v1';

export interface Step {
  readonly name: string;
  run(store: RevisionStore): Promise<unknown>;
  /** All revisions after the step, as `describe` prints them. */
  readonly state: string;
}

/** A lifecycle of two packages with every kind of operation. Each step leads from one state to exactly the next one. */
export const SCENARIO: readonly Step[] = [
  {
    name: 'create',
    run: (store) => store.create('packages', { package: 'a', workspace: 'v1', source: { type: 'init' } }, context),
    state: 'a.v1 Draft 0 -',
  },
  {
    name: 'edit and gate',
    run: (store) =>
      store.change(
        A1,
        {
          files: new Map([['app.yaml', Buffer.from('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n')]]),
          kptfile: [{ op: 'addGate', conditionType: 'tested' }],
        },
        context,
      ),
    state: 'a.v1 Draft 0 tested=Missing',
  },
  {
    name: 'give condition',
    run: (store) => store.change(A1, { conditions: [{ type: 'tested', status: 'True' }] }, context),
    state: 'a.v1 Draft 0 tested=Open',
  },
  {
    name: 'propose',
    run: (store) => store.update(A1, { action: 'propose' }, context),
    state: 'a.v1 Proposed 0 tested=Open',
  },
  {
    name: 'approve',
    run: (store) => store.update(A1, { action: 'approve' }, context),
    state: 'a.main Published -1 tested=Open, a.v1 Published 1 tested=Open',
  },
  {
    name: 'copy',
    run: (store) =>
      store.create('packages', { package: 'a', workspace: 'v2', source: { type: 'copy', source: A1 } }, context),
    state: 'a.main Published -1 tested=Open, a.v1 Published 1 tested=Open, a.v2 Draft 0 tested=Open',
  },
  {
    name: 'propose deletion',
    run: (store) => store.update(A1, { action: 'propose-deletion' }, context),
    state: 'a.main Published -1 tested=Open, a.v1 DeletionProposed 1 tested=Open, a.v2 Draft 0 tested=Open',
  },
  {
    name: 'create another',
    run: (store) => store.create('packages', { package: 'b', workspace: 'v1', source: { type: 'init' } }, context),
    state:
      'a.main Published -1 tested=Open, a.v1 DeletionProposed 1 tested=Open, a.v2 Draft 0 tested=Open, b.v1 Draft 0 -',
  },
  {
    name: 'delete a published revision',
    run: (store) => store.update(A1, { action: 'delete' }, context),
    state: 'a.main Published -1 tested=Open, a.v2 Draft 0 tested=Open, b.v1 Draft 0 -',
  },
  {
    name: 'propose the copy',
    run: (store) => store.update(A2, { action: 'propose' }, context),
    state: 'a.main Published -1 tested=Open, a.v2 Proposed 0 tested=Open, b.v1 Draft 0 -',
  },
  {
    name: 'reject',
    run: (store) => store.update(A2, { action: 'reject' }, { ...context, reason: 'not yet' }),
    state: 'a.main Published -1 tested=Open, a.v2 Draft 0 tested=Open, b.v1 Draft 0 -#rejected',
  },
  {
    name: 'delete a draft',
    run: (store) => store.update(B1, { action: 'delete' }, context),
    state: 'a.main Published -1 tested=Open, a.v2 Draft 0 tested=Open',
  },
];

/** The state of a store in one line: every revision with its lifecycle, number and gates. */
export async function describe(store: RevisionStore): Promise<string> {
  const parts: string[] = [];
  let rejected = false;
  for (const { name, lifecycle, revision } of store.list()) {
    const { gates, record } = await store.evaluate(name);
    const list = gates.map((gate) => `${gate.type}=${gate.state}`).join('+');
    parts.push(`${name.replace('packages.', '')} ${lifecycle} ${revision} ${list === '' ? '-' : list}`);
    rejected ||= record.steps.at(-1)?.action === 'reject';
  }
  return `${parts.join(', ')}${rejected && parts.some((part) => part.startsWith('b.')) ? '#rejected' : ''}`;
}

/** The number of completed steps of the scenario; -1 if the state is none of its states. */
export async function progress(store: RevisionStore): Promise<number> {
  const state = await describe(store);
  return state === '' ? 0 : SCENARIO.findIndex((step) => step.state === state) + 1 || -1;
}
