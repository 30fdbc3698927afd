import type { Clock } from '../../foundation/clock.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { ListResult } from '../../resource/storage/storage.ts';
import { type Answer, encodedAnswer } from '../http/answer.ts';
import type { Representation } from '../http/media-type.ts';
import { JSON_TYPE } from '../http/request-body.ts';
import { GenerationCache } from './generation-cache.ts';
import { partialMetadata } from './partial-metadata.ts';
import { bookmarkTable, type IncludeObject, includeObjectOf, tableOf } from './table.ts';

/** How one client sees the objects of one kind. */
export interface View extends Representation {
  readonly kind: Kind;
  readonly includeObject: IncludeObject;
}

/** Characters of JSON that are remembered: the lists and events of a few thousand objects. */
const JSON_BUDGET = 16 * 1024 * 1024;

/** Objects in a list from which on it is sent in parts. */
const PARTS_FROM = 2000;
/** Characters of a part: enough to be worth sending, and made within a few milliseconds. */
const PART_LENGTH = 1024 * 1024;

/** Writes objects as their readers want them. What is stored is turned into text once, whoever reads it. */
export class Presenter {
  readonly #clock: Clock;
  readonly #json = new GenerationCache<string>(JSON_BUDGET, (text) => text.length);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  view(kind: Kind, representation: Representation, query: URLSearchParams): View {
    return { ...representation, kind, includeObject: includeObjectOf(query.get('includeObject')) };
  }

  object(view: View, status: number, object: Stored): Answer {
    return encodedAnswer(status, `${this.json(view, object)}\n`, view.encoding);
  }

  list(view: View, { items, ...metadata }: ListResult<KubernetesObject>): Answer {
    const { kind, as } = view;
    if (as === 'table') {
      const table = tableOf(kind, items, { now: this.#clock.now(), includeObject: view.includeObject, metadata });
      return encodedAnswer(200, `${JSON.stringify(table)}\n`, view.encoding);
    }
    const head =
      as === 'partial'
        ? { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' }
        : { kind: `${kind.kind}List`, apiVersion: kind.apiVersion };
    const start = `${JSON.stringify({ ...head, metadata }).slice(0, -1)},"items":[`;
    if (items.length > PARTS_FROM && view.encoding === 'json')
      return { status: 200, contentType: JSON_TYPE, body: this.#parts(view, start, items) };
    const texts = items.map((item) => this.json(view, item));
    return encodedAnswer(200, `${start}${texts.join(',')}]}\n`, view.encoding);
  }

  /** A list that is too long to be remembered, some objects at a time. */
  *#parts(view: View, start: string, items: readonly Stored[]): Generator<string> {
    let part = start;
    for (const [index, item] of items.entries()) {
      const known = view.as === 'object' ? (this.#json.peek(item) ?? JSON.stringify(item)) : this.json(view, item);
      part += index === 0 ? known : `,${known}`;
      if (part.length < PART_LENGTH) continue;
      yield part;
      part = '';
    }
    yield `${part}]}\n`;
  }

  /** The JSON of one object. `later` leaves out what a watch has told already. */
  json(view: View, object: Stored, later = false): string {
    if (view.as === 'object') return this.#json.get(object, JSON.stringify);
    if (view.as === 'partial') return JSON.stringify(partialMetadata(object));
    const { includeObject } = view;
    const { resourceVersion } = object.metadata;
    const options = { now: this.#clock.now(), includeObject, metadata: { resourceVersion }, withoutColumns: later };
    return JSON.stringify(tableOf(view.kind, [object], options));
  }

  /** The JSON of an object that stands for a version of the list and nothing else. */
  bookmark(
    view: View,
    metadata: { readonly resourceVersion: string; readonly annotations?: Readonly<Record<string, string>> },
    later: boolean,
  ): string {
    if (view.as === 'table') return JSON.stringify(bookmarkTable(view.kind, metadata, later));
    if (view.as === 'partial') return JSON.stringify(partialMetadata({ metadata: { name: '', ...metadata } }));
    const { apiVersion, kind } = view.kind;
    return JSON.stringify({ kind, apiVersion, metadata: { ...metadata, creationTimestamp: null } });
  }
}
