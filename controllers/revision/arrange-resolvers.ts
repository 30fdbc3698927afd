import { matchesPattern } from '../../src/package/model/policy.ts';
import { mayNameFunctions, namesFunctions } from '../../src/package/plan/render.ts';
import type { Resolver, ResolverSubject } from '../../src/package/plan/resolver.ts';
import { RENDERER } from './run-state.ts';

/** What of a resolver decides about the order. */
export type Claims = Pick<Resolver, 'name' | 'claims' | 'waitsFor'>;

/** Why resolvers cannot run as they are configured. */
export interface ResolverProblem<R extends Claims = Resolver> {
  readonly reason: 'ResolverCycle' | 'ClaimOverlap' | 'DuplicateResolver';
  /** For people: who, about what, and what to change. */
  readonly message: string;
  /** The resolvers that do not run because of it. */
  readonly stopped: readonly R[];
}

export interface Arrangement<R extends Claims = Resolver> {
  /** The resolvers that run, in this order: after those whose conditions they wait for, otherwise by name. */
  readonly order: readonly R[];
  readonly problems: readonly ResolverProblem<R>[];
  /** All resolvers, also those that do not run: a package that one of them applies to is never complete. */
  readonly all: readonly R[];
}

/**
 * Puts resolvers into the order in which they run. Of two with one name or overlapping claims the one given later does not run;
 * of a circle none does. The order in which resolvers are given makes no other difference.
 */
export function arrangeResolvers<R extends Claims>(resolvers: readonly R[]): Arrangement<R> {
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
  const circles = new Map<string, R[]>();
  for (const resolver of accepted) {
    const members = circle(resolver, before);
    if (members.length === 0) runnable.push(resolver);
    else circles.set(members.map(({ name }) => name).join('\n'), members);
  }
  for (const members of circles.values()) problems.push(cycleProblem(members));
  return { order: sort(runnable, before), problems, all: resolvers };
}

/**
 * Names of the resolvers that say that a package is their business, sorted. A resolver that cannot tell counts, so that nothing
 * is taken for complete by accident. Where packages are rendered, so does the renderer for those that name functions.
 */
export function claimants(resolvers: readonly Resolver[], subject: ResolverSubject, renders: boolean): string[] {
  const names = resolvers.filter((resolver) => appliesOrFails(resolver, subject)).map(({ name }) => name);
  if (renders && mayNameFunctions(subject.files) && namesFunctions(subject.files) !== false) names.push(RENDERER);
  return [...new Set(names)].sort();
}

export function appliesOrFails(resolver: Resolver, subject: ResolverSubject): boolean {
  try {
    return resolver.applies(subject);
  } catch {
    // Whoever runs it meets the error again and tells it.
    return true;
  }
}

/** True if one condition type can match both patterns; each is exact, or a prefix ending in `*`. */
export function patternsOverlap(a: string, b: string): boolean {
  return matchesPattern(a, b.replace(/\*$/, '')) || matchesPattern(b, a.replace(/\*$/, ''));
}

function clash<R extends Claims>(resolver: R, accepted: readonly R[]): ResolverProblem<R> | undefined {
  for (const other of accepted) {
    if (other.name === resolver.name) {
      const message = `two resolvers are named ${resolver.name}; the second one does not run, give it another name`;
      return { reason: 'DuplicateResolver', message, stopped: [resolver] };
    }
    const claim = resolver.claims.find((mine) => other.claims.some((theirs) => patternsOverlap(mine, theirs)));
    if (claim === undefined) continue;
    const message = `resolver ${resolver.name} claims ${claim}, which resolver ${other.name} claims too; ${resolver.name} does not run until one of them gives the claim up`;
    return { reason: 'ClaimOverlap', message, stopped: [resolver] };
  }
  return undefined;
}

function cycleProblem<R extends Claims>(members: readonly R[]): ResolverProblem<R> {
  const waits = members.map(({ name, waitsFor = [] }) => `${name} waits for ${waitsFor.join(', ')}`).join('; ');
  const message = `resolvers wait for each other in a circle: ${waits}; none of them runs until one wait is taken out`;
  return { reason: 'ResolverCycle', message, stopped: members };
}

function predecessors<R extends Claims>(resolver: R, all: readonly R[]): R[] {
  const { waitsFor = [] } = resolver;
  return all.filter((other) => other.claims.some((claim) => waitsFor.some((type) => patternsOverlap(claim, type))));
}

/** The resolvers that wait for this one and that it waits for, itself among them; empty if it is in no circle. */
function circle<R>(resolver: R, before: ReadonlyMap<R, readonly R[]>): R[] {
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

/** The runnable ones, each after all it waits for; without circles there is always a next one. */
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
