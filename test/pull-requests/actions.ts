import fc from 'fast-check';
import { METHODS, USERS, type User } from './host.ts';

export const PACKAGES = ['app', 'web'] as const;
export const SECRETS = ['forge', 'rotated'] as const;
export const WORKSPACES = ['w1', 'w2'] as const;

/** The policy and the host of a sequence. */
export interface Settings {
  readonly publishOn: 'merge' | 'review' | 'approval';
  readonly batch: boolean;
  readonly quorum: boolean;
  readonly forbidSelf: boolean;
  /** A gate is required for approval. */
  readonly gate: boolean;
  /** The host refuses pushes of Sluice to the main branch. */
  readonly refusesPushes: boolean;
  /** The host requires the check for merges; its owner may bypass that. */
  readonly requiresCheck: boolean;
}

/** What users, the host and time do. Numbers of pull requests are modulo those that there are. */
export type Action =
  | { readonly do: 'propose' | 'delete' | 'withdraw'; readonly of: Of }
  | { readonly do: 'gate'; readonly of: Of; readonly status: 'True' | 'False' }
  | { readonly do: 'approve' | 'reject'; readonly of: Of; readonly user: User }
  | HostAction
  | { readonly do: 'policy'; readonly publishOn: Settings['publishOn'] }
  /** Another Secret or teams, of the policy, or of a second one that has one of the packages from then on. */
  | {
      readonly do: 'access';
      readonly secret: (typeof SECRETS)[number];
      readonly teams: boolean;
      readonly splits: boolean;
    }
  | { readonly do: 'restart'; readonly losesCaches: boolean }
  /** The process is killed at a request, before or after its effect, and another one starts. */
  | { readonly do: 'kill'; readonly after: number; readonly hasEffect: boolean }
  /** Some requests fail. */
  | { readonly do: 'fail'; readonly after: number; readonly count: number; readonly hasEffect: boolean }
  /** A user acts while the process works: before its next request but so many. */
  | { readonly do: 'race'; readonly after: number; readonly action: HostAction }
  | { readonly do: 'wait'; readonly seconds: number };

/** What is done at once, by the host. */
export type HostAction =
  | {
      readonly do: 'review';
      readonly pull: number;
      readonly user: User;
      readonly verdict: 'APPROVE' | 'REQUEST_CHANGES';
    }
  | { readonly do: 'dismiss'; readonly pull: number; readonly user: User }
  | { readonly do: 'comment'; readonly pull: number; readonly user: User; readonly text: string }
  | {
      readonly do: 'merge';
      readonly pull: number;
      readonly user: User;
      readonly method: (typeof METHODS)[number];
      readonly deletes: boolean;
    }
  | { readonly do: 'close'; readonly pull: number; readonly user: User }
  | { readonly do: 'reopen'; readonly pull: number; readonly user: User; readonly restores: boolean }
  | { readonly do: 'push'; readonly of: Of; readonly what: 'package' | 'foreign' | 'other' | 'main' | 'revert' }
  | { readonly do: 'remove-branch'; readonly of: Of }
  | { readonly do: 'edit-main'; readonly what: Package | 'other' }
  | {
      readonly do: 'user-pull';
      readonly branch: number;
      readonly package: Package;
      readonly isTested: boolean;
      readonly user: User;
    };

export type Package = (typeof PACKAGES)[number];
export interface Of {
  readonly package: Package;
  readonly workspace: (typeof WORKSPACES)[number];
}

/** An action, and how long the process works after it: not at all, for a moment, or some polls. */
export interface Step {
  readonly action: Action;
  readonly works: 'at once' | 'soon' | 'later';
}

const of: fc.Arbitrary<Of> = fc.record({
  package: fc.constantFrom(...PACKAGES),
  workspace: fc.constantFrom(...WORKSPACES),
});
const pull = fc.nat({ max: 2 });
const user = fc.constantFrom(...USERS);
/** Mostly one whose decision counts. */
const decider = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<User>('bob', 'carl') },
  { weight: 2, arbitrary: user },
);
const act = <Kind extends string>(kind: Kind) => fc.constant(kind);

const hostAction = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      ...{ do: act('review'), pull, user: decider },
      verdict: fc.constantFrom('APPROVE' as const, 'APPROVE' as const, 'REQUEST_CHANGES' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: act('dismiss'), pull, user: decider }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ do: act('comment'), pull, user: decider },
      text: fc.constantFrom(
        '/sluice approve',
        '/sluice approve',
        '/sluice reject not good',
        '/sluice set example.com/Tested True fine',
        '/sluice set example.com/Tested False broken',
        '/sluice why',
        '/sluice rerun',
        '/sluice adopt',
      ),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ do: act('merge'), pull, user: decider, method: fc.constantFrom(...METHODS), deletes: fc.boolean() },
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: act('close'), pull, user }) },
  { weight: 2, arbitrary: fc.record({ do: act('reopen'), pull, user, restores: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...{ do: act('push'), of },
      what: fc.constantFrom(
        'package' as const,
        'foreign' as const,
        'other' as const,
        'main' as const,
        'revert' as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: act('remove-branch'), of }) },
  { weight: 2, arbitrary: fc.record({ do: act('edit-main'), what: fc.constantFrom(...PACKAGES, 'other' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ do: act('user-pull'), branch: fc.nat({ max: 1 }), package: fc.constantFrom(...PACKAGES) },
      ...{ isTested: fc.boolean(), user },
    }),
  },
) satisfies fc.Arbitrary<HostAction>;

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: act('propose'), of }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'withdraw' as const), of }) },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ do: act('gate'), of },
      status: fc.constantFrom('True' as const, 'True' as const, 'True' as const, 'False' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: act('approve'), of, user: decider }) },
  { weight: 1, arbitrary: fc.record({ do: act('reject'), of, user: decider }) },
  { weight: 28, arbitrary: hostAction },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ do: act('policy'), publishOn: fc.constantFrom('merge' as const, 'review' as const, 'approval' as const) },
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ do: act('access'), secret: fc.constantFrom(...SECRETS), teams: fc.boolean(), splits: fc.boolean() },
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: act('restart'), losesCaches: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: act('kill'), after: fc.nat({ max: 15 }), hasEffect: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{
        do: act('fail'),
        after: fc.nat({ max: 10 }),
        count: fc.integer({ min: 1, max: 4 }),
        hasEffect: fc.boolean(),
      },
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: act('race'), after: fc.nat({ max: 10 }), action: hostAction }) },
  { weight: 1, arbitrary: fc.record({ do: act('wait'), seconds: fc.constantFrom(60, 700, 4000) }) },
);

export const step: fc.Arbitrary<Step> = fc.record({
  action,
  works: fc.constantFrom('later' as const, 'soon' as const, 'at once' as const, 'later' as const),
});

export const settings: fc.Arbitrary<Settings> = fc.record({
  publishOn: fc.constantFrom('merge' as const, 'merge' as const, 'review' as const, 'approval' as const),
  batch: fc.constantFrom(false, false, true),
  quorum: fc.constantFrom(false, false, true),
  forbidSelf: fc.constantFrom(false, false, true),
  gate: fc.boolean(),
  refusesPushes: fc.constantFrom(false, false, true),
  requiresCheck: fc.boolean(),
});

/** One line for a person. */
export function lineOf(value: object): string {
  const parts = Object.entries(value).map(([name, part]) => {
    if (name === 'of') return Object.values(part as Of).join('/');
    if (typeof part === 'object') return `{ ${lineOf(part as object)} }`;
    if (typeof part === 'boolean') return part ? name : `not ${name}`;
    return name === 'do' ? `${part}` : `${name}: ${part}`;
  });
  return parts.join(', ');
}

export function describe(config: Settings, steps: readonly Step[]): string {
  const lines = steps.map((one, at) => `${String(at + 1).padStart(3)}. ${lineOf(one.action)}  [${one.works}]`);
  return [`settings: ${lineOf(config)}`, ...lines].join('\n');
}
