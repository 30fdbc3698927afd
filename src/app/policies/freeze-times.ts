import { z } from 'zod';
import type { Informer } from '../../controller/informer.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { type FreezeRule, freezesAt } from '../../package/model/policy/approval-rules.ts';
import { freezeRuleOf } from '../../package/store/policies/freeze-objects.ts';
import type { Freeze } from '../../resource/kinds/sluice/freeze.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import type { NoteTable } from '../../resource/storage/sqlite/note-table.ts';

/** What hosts merged is read within this time after the merge, also where a host was not reachable for hours. */
const KEPT_MS = 24 * 3_600_000;

/** A freeze that begins or ends, as far as this process follows it. */
export interface FreezeChange {
  readonly freeze: Stored<Freeze>;
  readonly rule: FreezeRule;
  /** How it ended; undefined for one that begins, or changes. */
  readonly ended?: string;
}

/** What outlives the process. */
export type FreezeMemory = Pick<NoteTable, 'get' | 'set' | 'delete' | 'entries'>;

interface Known {
  readonly freeze: Stored<Freeze>;
  readonly rule: FreezeRule;
  isInForce: boolean;
  cancel(): void;
}

const noteSchema = z.object({
  name: z.string(),
  namespace: z.string(),
  isInstallation: z.boolean(),
  reason: z.string(),
  startedBy: z.string().exactOptional(),
  since: z.string(),
  until: z.number().exactOptional(),
});
const noteText = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'is no JSON' });
      return z.NEVER;
    }
  })
  .pipe(noteSchema);
type EndedFreeze = FreezeRule & { readonly until: number };

/**
 * When freezes begin and end. Those that were deleted, or ended by a change, stay known for a day: what a Git host merged during one is judged by it,
 * however late that is read. One that was deleted while no process followed it ended at an unknown time before the start of this one, which counts
 * as its end: a merge must not be published since its freeze was deleted unseen.
 */
export class FreezeTimes {
  readonly #clock: Clock;
  readonly #systemNamespace: string;
  readonly #memory: FreezeMemory;
  readonly #freezes: Pick<Informer<Freeze>, 'addHandler'>;
  readonly #listeners = new Set<(change: FreezeChange) => void>();
  /** Those that exist, also with an end that has passed. */
  readonly #known = new Map<string, Known>();
  /** Those that an earlier process knew and this one has not seen yet. */
  readonly #unseen = new Map<string, FreezeRule>();
  /** By namespace: those of others cost a decision nothing. */
  readonly #ended = new Map<string, readonly EndedFreeze[]>();
  #unsubscribe: (() => void) | undefined;

  constructor(
    freezes: Pick<Informer<Freeze>, 'addHandler'>,
    clock: Clock,
    systemNamespace: string,
    memory: FreezeMemory = new Map<string, string>(),
    onError?: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#systemNamespace = systemNamespace;
    this.#memory = memory;
    this.#freezes = freezes;
    for (const [key, text] of memory.entries())
      if (!this.#load(key, text)) {
        memory.delete(key);
        onError?.(damaged(key));
      }
    this.#unsubscribe = this.#freezes.addHandler(({ type, object }) => {
      if (type === 'delete') this.#delete(object);
      else this.#put(object);
    });
  }

  /** All freezes were read: what an earlier process knew and is not among them has ended. */
  settle(): void {
    for (const rule of this.#unseen.values()) this.#end(rule, this.#clock.now());
    this.#unseen.clear();
  }

  /** Those that ended lately, with the times of their ends. */
  in(namespaces: readonly string[]): readonly FreezeRule[] {
    return [...new Set(namespaces)].flatMap((namespace) => this.#ended.get(namespace) ?? []);
  }

  /** Calls the listener with all that are in force, and with each change, until the returned function is called. */
  follow(listener: (change: FreezeChange) => void): () => void {
    this.#listeners.add(listener);
    for (const { isInForce, freeze, rule } of this.#known.values()) if (isInForce) listener({ freeze, rule });
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#unsubscribe?.();
    for (const { cancel } of this.#known.values()) cancel();
  }

  #put(freeze: Stored<Freeze>): void {
    const key = keyText(keyOf(freeze));
    const rule = freezeRuleOf(freeze, this.#systemNamespace);
    const before = this.#known.get(key);
    before?.cancel();
    const earlier = before?.rule ?? this.#unseen.get(key);
    this.#unseen.delete(key);
    // Another one has its name.
    if (earlier !== undefined && earlier.since !== rule.since) this.#end(earlier, Date.parse(rule.since));
    const now = this.#clock.now();
    const isInForce = freezesAt([rule], now).length > 0;
    const known: Known = { freeze, rule, isInForce, cancel: () => undefined };
    this.#known.set(key, known);
    this.#memory.set(key, JSON.stringify(rule));
    if (isInForce && rule.until !== undefined)
      // A timer cannot wait for months; the wait continues then.
      known.cancel = this.#clock.schedule(rule.until - now, () => this.#put(freeze));
    if (isInForce) this.#report({ freeze, rule });
    else if (before?.isInForce === true) {
      // A changed end would otherwise be that of the time before the change too.
      if (before.rule.since === rule.since && before.rule.until !== rule.until) this.#remember(before.rule, now);
      this.#report({ freeze, rule, ended: 'its time has passed' });
    }
  }

  #delete(freeze: Stored<Freeze>): void {
    const key = keyText(keyOf(freeze));
    const before = this.#known.get(key);
    if (before === undefined) return;
    before.cancel();
    this.#known.delete(key);
    this.#end(before.rule, this.#clock.now());
    if (before.isInForce) this.#report({ freeze, rule: before.rule, ended: 'it was deleted' });
  }

  #report(change: FreezeChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  #end(rule: FreezeRule, now: number): void {
    this.#memory.delete(keyText(rule));
    this.#remember(rule, now);
  }

  #remember(rule: FreezeRule, now: number): void {
    // Decisions have times in seconds: one in the second of the end is after it.
    const end = Math.floor(now / 1000) * 1000;
    const ended = { ...rule, until: Math.min(rule.until ?? end, end) };
    const isRecent = ({ until }: EndedFreeze) => this.#clock.now() - until < KEPT_MS;
    const earlier = this.#ended.get(rule.namespace) ?? [];
    for (const one of earlier) if (!isRecent(one)) this.#memory.delete(endedKey(one));
    this.#ended.set(rule.namespace, [...earlier.filter(isRecent), ended]);
    this.#memory.set(endedKey(ended), JSON.stringify(ended));
  }

  /** Returns false for a note that cannot be read. */
  #load(key: string, text: string): boolean {
    const { data: rule } = noteText.safeParse(text);
    if (rule === undefined) return false;
    const { until } = rule;
    if (key === keyText(rule)) this.#unseen.set(key, rule);
    else if (until === undefined) return false;
    else if (this.#clock.now() - until < KEPT_MS)
      this.#ended.set(rule.namespace, [...(this.#ended.get(rule.namespace) ?? []), { ...rule, until }]);
    else this.#memory.delete(key);
    return true;
  }
}

function damaged(key: string): SluiceError {
  return new SluiceError(
    'Corrupt',
    `the note about freeze ${JSON.stringify(key)} is damaged and is ignored: if that freeze has ended, what was merged during it is published; check the merges of that time`,
  );
}

/** No name of an object has a space. */
function endedKey(rule: EndedFreeze): string {
  return `${keyText(rule)} ${rule.since} ${rule.until}`;
}
