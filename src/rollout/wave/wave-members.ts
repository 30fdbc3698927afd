import type { Observations, TargetObservation } from './observation.ts';
import { compareTargets, type PlanState, type TargetRecord } from './plan-state.ts';
import { percentOf, type WaveSpec } from './wave-spec.ts';

/** The targets of a wave that are still in the plan. */
export function membersOf({ targets }: PlanState, wave: string): TargetRecord[] {
  return [...targets.values()].filter((target) => target.wave === wave && target.phase !== 'Skipped');
}

/** How many more of the targets that joined until then a wave may have; below 0 if it has too many. */
interface Room {
  readonly joined: number;
  left: number;
}

export interface MemberChanges {
  /** Those that the wave has beyond its size, or that its selector does not match any more, the last ones first. What is approved stays. */
  readonly released: readonly TargetRecord[];
  /** Those that it has not yet, in order. */
  readonly taken: readonly TargetRecord[];
}

/** What the members of a wave depend on. */
export type MemberObservations = Pick<Observations, 'candidates' | 'isUnknown' | 'of'>;

/** True for a proposal that is approved, and that a merge of the Git host publishes. */
export function isApproved(revision: TargetObservation['revision']): boolean {
  return revision?.state === 'Proposed' && revision.isApproved === true;
}

/** True for a target that may leave its wave: it is not approved. What cannot be read may have been. */
export function mayLeave(target: TargetRecord, { isUnknown, of }: Omit<MemberObservations, 'candidates'>): boolean {
  return target.published === undefined && !isUnknown(target.id) && !isApproved(of(target).revision);
}

/** What leads a wave to its size and its selector, of the targets that are in the plan now. */
export function memberChanges(
  { targets }: PlanState,
  { name, size }: WaveSpec,
  observations: MemberObservations,
): MemberChanges {
  const { candidates } = observations;
  const isNamed = ({ id }: TargetRecord) =>
    !('selected' in size) || candidates?.get(id)?.selectedBy.includes(name) === true;
  const all = [...targets.values()].filter(({ phase }) => phase !== 'Skipped').sort(compareTargets);
  const rooms = roomsOf(name, size, all);
  const of = ({ order }: TargetRecord) => rooms.filter(({ joined }) => joined >= order.joined);
  const released: TargetRecord[] = [];
  for (const target of all.toReversed()) {
    if (target.wave !== name || !mayLeave(target, observations)) continue;
    const own = of(target);
    // Without candidates it is not known what the selector matches.
    if ((candidates === undefined || isNamed(target)) && own.every(({ left }) => left >= 0)) continue;
    for (const room of own) room.left += 1;
    released.push(target);
  }
  const taken: TargetRecord[] = [];
  for (const target of all) {
    if (target.wave !== undefined || !isNamed(target)) continue;
    const own = of(target);
    if (own.some(({ left }) => left <= 0)) continue;
    for (const room of own) room.left -= 1;
    taken.push(target);
  }
  return { released, taken };
}

/**
 * A percentage is one of all targets, and of those that had joined at each time before: however many users propose later, they do not
 * enlarge the part of those that were there.
 */
function roomsOf(name: string, size: WaveSpec['size'], all: readonly TargetRecord[]): Room[] {
  if ('selected' in size) return [];
  if ('count' in size) return [{ joined: Infinity, left: size.count - all.filter(({ wave }) => wave === name).length }];
  const rooms = new Map<number, Room>();
  let assigned = 0;
  for (const [index, { order, wave }] of all.entries()) {
    if (wave !== undefined) assigned += 1;
    rooms.set(order.joined, { joined: order.joined, left: percentOf(size.percent, index + 1) - assigned });
  }
  return [...rooms.values()];
}
