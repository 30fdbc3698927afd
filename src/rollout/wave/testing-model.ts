import type { Observations } from './observation.ts';
import type { Amount, PlanSpec } from './wave-spec.ts';

/** One target as the model has it: what it is known to be, with no phase. */
interface Entry {
  readonly id: string;
  readonly joined: number;
  key: string;
  revision: string;
  commit: string;
  isOut: boolean;
  wave: string | undefined;
  isBegun: boolean;
  /** True once its approval was intended, also if it has left its wave since. */
  wasBegun: boolean;
  published: boolean;
  result: 'ok' | 'failed' | 'unreachable' | undefined;
  isAccepted: boolean;
  blocked: string | undefined;
  since: number;
}

interface Part {
  readonly name: string;
  okSince: number | undefined;
  isDone: boolean;
  /** Its end without the spec is accepted. */
  isDropped: boolean;
  attempt: number;
}

/**
 * The rules of docs/waves.md once more, written apart from the state machine and in another way: a list of entries that is changed in place,
 * whole numbers, and one pass. Property tests compare both.
 */
export class WaveModel {
  readonly entries: Entry[] = [];
  readonly parts: Part[] = [];
  ended: 'aborted' | 'back' | 'completed' | undefined;
  isHeld = false;
  isStopped = false;
  stops = 0;
  #why: 'failures' | 'analysis' | 'missing' = 'failures';
  #time = 0;
  #joins = 0;

  /** The targets that may be approved after these observations, sorted. */
  observe(spec: PlanSpec, seen: Observations, ms: number): string[] {
    if (this.ended === 'aborted') return [];
    if (!seen.isFrozen) this.#time += ms;
    for (const one of this.entries)
      if (
        !one.isOut &&
        one.wave !== undefined &&
        !one.published &&
        seen.of(one as never).revision?.state === 'Published'
      )
        Object.assign(one, { published: true, isBegun: true, since: this.#time, result: undefined, isAccepted: false });
    if (spec.abort) this.ended = 'aborted';
    else if (spec.rollback) this.ended = 'back';
    if (this.ended === 'completed') this.#reopen(spec, seen);
    else if (this.ended === undefined) return this.#goOn(spec, seen);
    return [];
  }

  #goOn(spec: PlanSpec, seen: Observations): string[] {
    this.#list(seen);
    for (const one of this.entries) if (!one.isOut && one.wave !== undefined) this.#judge(one, spec, seen);
    this.#stopOrGoOn(spec, seen);
    if (this.ended !== undefined) return [];
    const mayBegin = !this.isHeld && !this.isStopped && !seen.isFrozen;
    while (this.#advance(spec, seen, mayBegin));
    if (!mayBegin) return [];
    for (const part of this.parts) this.#begin(part.name, spec);
    const isLast = this.parts.length > 0 && this.parts.every(({ isDone }) => isDone) && this.#next(spec) === undefined;
    const waits = this.entries.some(
      (one) => one.wave !== undefined && !one.isOut && !one.published && one.result === undefined,
    );
    if (isLast && !waits) {
      this.ended = 'completed';
      for (const one of this.entries) if (one.wave === undefined && !one.published) one.isOut = true;
      return [];
    }
    return this.entries
      .filter((one) => !one.isOut && one.isBegun && !one.published)
      .map(({ id }) => id)
      .sort();
  }

  members(wave: string): string[] {
    return this.entries.flatMap((one) => (one.wave === wave && !one.isOut ? one.id : [])).sort();
  }

  /** A plan that is over goes on for what it had lost, if a wave has a place for that: one that is left, or the last one that did something. */
  #reopen(spec: PlanSpec, seen: Observations): void {
    const back = this.entries.filter((one) => one.isOut && !one.wasBegun && seen.candidates?.has(one.id) === true);
    if (seen.isEdited !== true || back.length === 0) return;
    const kept = this.parts.slice();
    for (let at = kept.at(-1); at !== undefined && this.#own(at.name).length === 0; at = kept.at(-1)) kept.pop();
    const trial = new WaveModel();
    trial.entries.push(...this.entries.map((one) => ({ ...one })));
    trial.parts.push(...kept);
    trial.#joins = this.#joins;
    trial.#list(seen);
    const last = kept.at(-1);
    const isKnown = last !== undefined && placeIn(spec, last.name) >= 0;
    if (isKnown) trial.#take(last.name, spec, seen);
    const isShort = isKnown && trial.members(last.name).some((id) => back.some((one) => one.id === id));
    if (!isShort && trial.#next(spec) === undefined) return;
    this.ended = undefined;
    this.parts.length = kept.length;
    if (!isShort) return;
    if (last.okSince !== undefined) last.attempt += 1;
    Object.assign(last, { okSince: undefined, isDone: false, isDropped: false });
  }

  #list({ candidates, isUnknown, of }: Observations): void {
    if (candidates === undefined) return;
    const joined = this.parts.length === 0 ? 0 : this.#joins + 1;
    for (const { id, key, revision, commit } of candidates.values()) {
      const at = this.entries.findIndex((one) => one.id === id);
      const known = this.entries[at];
      if (known === undefined || (known.isOut && (known.commit !== commit || !known.wasBegun))) {
        const empty = { isOut: false, wave: undefined, isBegun: false, published: false, isAccepted: false };
        const place = known?.commit === commit ? known.joined : joined;
        const entry = {
          id,
          joined: place,
          wasBegun: false,
          key,
          revision,
          commit,
          ...empty,
          result: undefined,
          blocked: undefined,
          since: this.#time,
        };
        if (at < 0) this.entries.push(entry);
        else this.entries[at] = entry;
        this.#joins = Math.max(this.#joins, place);
      } else if (!known.isOut && known.commit !== commit && !known.published)
        Object.assign(known, { revision, commit });
      else if (!known.isOut && known.commit !== commit && known.wave === undefined)
        Object.assign(known, { revision, commit, published: false, since: this.#time });
    }
    for (const one of this.entries) {
      if (one.isOut || one.published || candidates.has(one.id) || isUnknown(one.id)) continue;
      const { state } = of(one as never).revision ?? {};
      if (one.wave === undefined && state === 'Published') {
        one.published = true;
        continue;
      }
      if (one.wave !== undefined && this.#isDecided(one, of)) continue;
      one.isOut = true;
      if (state === 'Proposed') one.wasBegun = false;
    }
  }

  #judge(one: Entry, spec: PlanSpec, { of }: Observations): void {
    const { verification, refusal, failure } = of(one as never);
    const isLate = this.#time - one.since >= spec.progressDeadlineMs;
    if (!one.published) {
      if (!one.isBegun || one.result !== undefined) return;
      if (refusal !== one.blocked) Object.assign(one, { blocked: refusal, since: this.#time });
      else if (refusal === undefined && isLate && failure !== undefined) this.#settle(one, 'unreachable');
      return;
    }
    if (verification === undefined) return;
    const { result } = verification;
    const isOpen = this.parts.some(({ name, isDone }) => name === one.wave && !isDone);
    if (one.result === 'ok') {
      if (isOpen && (result === 'Degraded' || result === 'Failed')) this.#settle(one, undefined);
    } else if (result === 'Verified') this.#settle(one, 'ok');
    else if (one.result !== undefined) return;
    else if (result === 'Failed') this.#settle(one, 'failed');
    else if (isLate) this.#settle(one, result === 'Unreachable' ? 'unreachable' : 'failed');
  }

  #settle(one: Entry, result: Entry['result']): void {
    Object.assign(one, { result, since: this.#time, isAccepted: false });
  }

  #stopOrGoOn(spec: PlanSpec, { analysisOf, isFrozen }: Observations): void {
    const part = this.parts.find(({ isDone }) => !isDone);
    if (this.isStopped && this.#why === 'missing' && !this.#isMissing(part, spec)) this.isStopped = false;
    else if (this.isStopped) {
      if (spec.resume < this.stops) return;
      this.isStopped = false;
      if (this.#why === 'missing' && part !== undefined) part.isDropped = true;
      for (const one of this.entries)
        if (!one.isOut && one.result !== undefined && one.result !== 'ok') one.isAccepted = true;
      if (this.#why === 'analysis' && part !== undefined) part.attempt += 1;
    } else if (this.isHeld && !spec.paused) this.isHeld = false;
    if (this.isHeld) return;
    const all = this.entries.filter(({ isOut }) => !isOut);
    const tooMany = (wanted: string, limit: Amount) =>
      all.filter((one) => one.result === wanted && !one.isAccepted).length > this.#limit(limit, all.length);
    const exceeded = tooMany('failed', spec.maxFailures) || tooMany('unreachable', spec.maxUnreachable);
    const isMissing = this.#isMissing(part, spec);
    const bad = part?.okSince === undefined || isMissing ? undefined : this.#bad(part, spec, analysisOf);
    if (!isFrozen && (exceeded || isMissing || bad !== undefined)) {
      if (spec.onFailure === 'Rollback' && (exceeded || (bad !== undefined && bad !== 'Inconclusive')))
        this.ended = 'back';
      else {
        this.isStopped = true;
        this.#why = exceeded ? 'failures' : isMissing ? 'missing' : 'analysis';
        this.stops += 1;
      }
    } else if (spec.paused) this.isHeld = true;
  }

  #bad(part: Part, spec: PlanSpec, analysisOf: Observations['analysisOf']): string | undefined {
    for (let index = 0; index < this.#analyses(part.name, spec); index += 1) {
      const phase = analysisOf({ wave: part.name, attempt: part.attempt, index })?.phase;
      if (phase === 'Failed' || phase === 'Error' || phase === 'Inconclusive') return phase;
    }
    return undefined;
  }

  /** True if something changed. */
  #advance(spec: PlanSpec, seen: Observations, mayBegin: boolean): boolean {
    this.#drop(spec, seen);
    const part = this.parts.find(({ isDone }) => !isDone);
    if (part === undefined) return mayBegin && this.#start(spec, seen);
    const place = placeIn(spec, part.name);
    if (this.#isPassed(part, spec)) {
      if (place === spec.waves.length - 1) {
        this.#release(part.name, spec, seen);
        this.#take(part.name, spec, seen);
      }
      part.isDone = true;
      return true;
    }
    if (place >= 0) part.isDropped = false;
    const isLast = place >= 0 && place === spec.waves.length - 1;
    if (place >= 0) this.#release(part.name, spec, seen);
    if (place >= 0 && (part.okSince === undefined || isLast)) this.#take(part.name, spec, seen);
    let own = this.#own(part.name);
    if (own.length === 0 && place >= 0) {
      // It begins once more.
      if (part.okSince !== undefined) part.attempt += 1;
      part.okSince = undefined;
      this.#take(part.name, spec, seen);
      own = this.#own(part.name);
      if (own.length === 0) return false;
    } else if (own.length === 0 && part.isDropped) {
      part.isDone = true;
      return true;
    } else if (own.length === 0) {
      if (part.okSince !== undefined) part.attempt += 1;
      part.okSince = undefined;
      return false;
    }
    if (own.some(({ result }) => result === undefined)) {
      const isNew = part.okSince !== undefined;
      if (isNew) part.attempt += 1;
      part.okSince = undefined;
      return isNew;
    }
    part.okSince ??= this.#time;
    if (place < 0 && !part.isDropped) return false;
    for (let index = 0; index < this.#analyses(part.name, spec); index += 1)
      if (seen.analysisOf({ wave: part.name, attempt: part.attempt, index })?.phase !== 'Successful') return false;
    part.isDone = this.#time - part.okSince >= (spec.waves[place]?.soakMs ?? 0);
    return part.isDone;
  }

  #start(spec: PlanSpec, seen: Observations): boolean {
    const next = this.#next(spec);
    if (next === undefined || this.entries.every(({ isOut }) => isOut) || seen.candidates === undefined) return false;
    if (seen.approvalsOf(next.name) < next.approvals) return false;
    if (this.parts.length === 0) for (const one of this.entries) one.key = seen.candidates.get(one.id)?.key ?? one.key;
    const part: Part = { name: next.name, okSince: undefined, isDone: false, isDropped: false, attempt: 1 };
    this.parts.push(part);
    this.#take(next.name, spec, seen);
    part.isDone = this.#own(next.name).length === 0;
    return true;
  }

  #next(spec: PlanSpec) {
    return spec.waves.find(({ name }) => !this.parts.some((part) => part.name === name));
  }

  #own(wave: string): Entry[] {
    return this.entries.filter((one) => one.wave === wave && !one.isOut);
  }

  /** True if the wave is within its size, also among those only that had joined when `one` had, or any later one. */
  #fits(wave: string, spec: PlanSpec, one: Entry): boolean {
    const { size } = spec.waves.find(({ name }) => name === wave) ?? {};
    if (size === undefined || 'selected' in size) return true;
    if ('count' in size) return this.#own(wave).length <= size.count;
    const all = this.entries.filter(({ isOut }) => !isOut);
    return all.every(({ joined }) => {
      if (joined < one.joined) return true;
      const until = all.filter((other) => other.joined <= joined);
      // In thousandths of a percent, and whole numbers.
      const most = -Math.floor(-(Math.round(size.percent * 1000) * until.length) / 100_000);
      return until.filter((other) => other.wave !== undefined).length <= Math.min(until.length, most);
    });
  }

  #release(wave: string, spec: PlanSpec, seen: Observations): void {
    const { size } = spec.waves[placeIn(spec, wave)] ?? {};
    const isMeant = ({ id }: Entry) =>
      size === undefined ||
      !('selected' in size) ||
      seen.candidates === undefined ||
      seen.candidates.get(id)?.selectedBy.includes(wave) === true;
    for (const one of this.#own(wave).sort(byOrder).reverse())
      if (!isMeant(one) || !this.#fits(wave, spec, one)) this.#letGo(one, seen);
  }

  /** Waves that the spec has no more keep only what they have approved. */
  #drop(spec: PlanSpec, seen: Observations): void {
    for (const part of this.parts)
      if (placeIn(spec, part.name) < 0 && (part.isDone || part.isDropped))
        for (const one of this.#own(part.name))
          this.#letGo(one, one.isBegun ? seen : { ...seen, isUnknown: () => false });
  }

  #letGo(one: Entry, { isUnknown, of }: Observations): void {
    if (one.published || isUnknown(one.id) || this.#isDecided(one, of)) return;
    Object.assign(one, {
      ...{ wave: undefined, isBegun: false, result: undefined, isAccepted: false, blocked: undefined },
      since: this.#time,
    });
  }

  /** The host is to merge it. */
  #isDecided(one: Entry, of: Observations['of']): boolean {
    const { revision } = of(one as never);
    return revision?.state === 'Proposed' && revision.isApproved === true;
  }

  #isPassed(part: Part, spec: PlanSpec): boolean {
    const { promotePast: past } = spec;
    if (past === undefined || part.isDone) return false;
    if (past === part.name) return true;
    const isOver = this.parts.some(({ name, isDone }) => name === past && isDone);
    return !isOver && spec.waves.slice(0, placeIn(spec, past) + 1).length > Math.max(0, placeIn(spec, part.name));
  }

  /** Nothing says how long it soaks. */
  #isMissing(part: Part | undefined, spec: PlanSpec): boolean {
    return part !== undefined && placeIn(spec, part.name) < 0 && !part.isDropped && !this.#isPassed(part, spec);
  }

  #take(wave: string, spec: PlanSpec, { candidates }: Observations): void {
    const { size } = spec.waves.find(({ name }) => name === wave) ?? {};
    for (const one of this.entries.filter(({ isOut }) => !isOut).sort(byOrder)) {
      if (one.wave !== undefined) continue;
      if (size !== undefined && 'selected' in size && candidates?.get(one.id)?.selectedBy.includes(wave) !== true)
        continue;
      one.wave = wave;
      if (this.#fits(wave, spec, one)) Object.assign(one, { isBegun: one.published, since: this.#time });
      else one.wave = undefined;
    }
  }

  #begin(wave: string, spec: PlanSpec): void {
    const own = this.#own(wave);
    if (placeIn(spec, wave) < 0) return;
    const limit = spec.waves.find(({ name }) => name === wave)?.maxConcurrency;
    let free = limit === undefined ? own.length : Math.max(1, this.#limit(limit, own.length));
    free -= own.filter((one) => one.isBegun && one.result === undefined).length;
    for (const one of own.filter((each) => !each.isBegun).sort(byOrder)) {
      if (free <= 0) return;
      free -= 1;
      Object.assign(one, { isBegun: true, wasBegun: true, since: this.#time });
    }
  }

  #analyses(wave: string, spec: PlanSpec): number {
    return spec.waves.find(({ name }) => name === wave)?.analyses ?? 0;
  }

  #limit(amount: Amount, total: number): number {
    return 'count' in amount ? amount.count : Math.floor((amount.percent * total) / 100);
  }
}

function placeIn({ waves }: PlanSpec, wave: string): number {
  return waves.findIndex(({ name }) => name === wave);
}

function byOrder(a: Entry, b: Entry): number {
  return a.joined - b.joined || (a.key < b.key ? -1 : 1);
}
