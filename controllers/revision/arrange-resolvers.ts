import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import { mayNameFunctions, namesFunctions } from '../../src/package/plan/edit/render.ts';
import type { Resolver, ResolverSubject } from '../../src/package/plan/ports/resolver.ts';
import { RENDERER } from './run-state.ts';

/** The fields of a resolver that determine the order. */
export type OrderedResolver = Pick<Resolver, 'name' | 'claims' | 'waitsFor'>;

/** The reason why resolvers cannot run as they are configured. */
export interface ResolverProblem<R extends OrderedResolver = Resolver> {
  readonly reason: 'ResolverCycle' | 'ClaimOverlap' | 'DuplicateResolver';
  /** For users: which resolvers, the cause, and what to change. */
  readonly message: string;
  /** The resolvers that do not run because of it. */
  readonly stopped: readonly R[];
}

export interface Arrangement<R extends OrderedResolver = Resolver> {
  /** The resolvers that run, in this order: after those whose conditions they wait for, otherwise by name. */
  readonly order: readonly R[];
  readonly problems: readonly ResolverProblem<R>[];
  /** All resolvers, also those that do not run: a package that one of them applies to is never complete. */
  readonly all: readonly R[];
}

/**
 * Puts resolvers into the order in which they run. Of two with the same name or overlapping claims the one listed later does not run;
 * of a cycle none does. The order of the list makes no other difference.
 */
export function arrangeResolvers<R extends OrderedResolver>(resolvers: readonly R[]): Arrangement<R> {
  const problems: ResolverProblem<R>[] = [];
  const accepted: R[] = [];
  for (const resolver of resolvers) {
    const problem = clash(resolver, accepted);
    if (problem === undefined) accepted.push(resolver);
    else problems.push(problem);
  }
  accepted.sort((a, b) => (a.name < b.name ? -1 : 1));
  const before = new Map(accepted.map((resolver) => [resolver, predecessors(resolver, accepted)]));
  const runnable: R[] = [];
  const cycles = new Map<string, R[]>();
  for (const resolver of accepted) {
    const members = cycleOf(resolver, before);
    if (members.length === 0) runnable.push(resolver);
    else cycles.set(members.map(({ name }) => name).join('\n'), members);
  }
  for (const members of cycles.values()) problems.push(cycleProblem(members));
  return { order: sort(runnable, before), problems, all: resolvers };
}

/**
 * Names of the resolvers that apply to a package, sorted. A resolver whose check throws counts, so that no package
 * is complete by accident. Where packages are rendered, the renderer counts for packages with functions.
 */
export function applicableResolvers(
  resolvers: readonly Resolver[],
  subject: ResolverSubject,
  renders: boolean,
): string[] {
  const names = resolvers.filter((resolver) => appliesOrFails(resolver, subject)).map(({ name }) => name);
  if (renders && mayNameFunctions(subject.files) && namesFunctions(subject.files) !== false) names.push(RENDERER);
  return [...new Set(names)].sort();
}

export function appliesOrFails(resolver: Resolver, subject: ResolverSubject): boolean {
  try {
    return resolver.applies(subject);
  } catch {
    // The run meets the same error and reports it.
    return true;
  }
}

/** True if one condition type can match both patterns; each is exact, or a prefix that ends in `*`. */
export function patternsOverlap(a: string, b: string): boolean {
  return matchesPattern(a, b.replace(/\*$/, '')) || matchesPattern(b, a.replace(/\*$/, ''));
}

function clash<R extends OrderedResolver>(resolver: R, accepted: readonly R[]): ResolverProblem<R> | undefined {
  for (const other of accepted) {
    if (other.name === resolver.name) {
      const message = `two resolvers are named ${resolver.name}; the second one does not run; rename it`;
      return { reason: 'DuplicateResolver', message, stopped: [resolver] };
    }
    const claim = resolver.claims.find((mine) => other.claims.some((theirs) => patternsOverlap(mine, theirs)));
    if (claim === undefined) continue;
    const message = `resolver ${resolver.name} claims ${claim}, which resolver ${other.name} claims too; ${resolver.name} does not run until one of them drops the claim`;
    return { reason: 'ClaimOverlap', message, stopped: [resolver] };
  }
  return undefined;
}

function cycleProblem<R extends OrderedResolver>(members: readonly R[]): ResolverProblem<R> {
  const waits = members.map(({ name, waitsFor = [] }) => `${name} waits for ${waitsFor.join(', ')}`).join('; ');
  const message = `resolvers wait for each other in a cycle: ${waits}; none of them runs until one wait is removed`;
  return { reason: 'ResolverCycle', message, stopped: members };
}

function predecessors<R extends OrderedResolver>(resolver: R, all: readonly R[]): R[] {
  const { waitsFor = [] } = resolver;
  return all.filter((other) => other.claims.some((claim) => waitsFor.some((type) => patternsOverlap(claim, type))));
}

/** The resolvers of the cycle that this one is in, itself included; empty if it is in none. */
function cycleOf<R>(resolver: R, before: ReadonlyMap<R, readonly R[]>): R[] {
  const awaited = reachable(resolver, before);
  return [...before.keys()].filter((other) => awaited.has(other) && reachable(other, before).has(resolver));
}

function reachable<R>(from: R, before: ReadonlyMap<R, readonly R[]>): Set<R> {
  const seen = new Set<R>();
  const open = [...(before.get(from) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(before.get(next) ?? []));
  }
  return seen;
}

/** The runnable resolvers, each after all that it waits for; without cycles there is always a next one. */
function sort<R>(runnable: readonly R[], before: ReadonlyMap<R, readonly R[]>): R[] {
  const order: R[] = [];
  const rest = new Set(runnable);
  while (rest.size > 0) {
    const next = [...rest].find((resolver) => !(before.get(resolver) ?? []).some((awaited) => rest.has(awaited)));
    if (next === undefined) break;
    rest.delete(next);
    order.push(next);
  }
  return order;
}
