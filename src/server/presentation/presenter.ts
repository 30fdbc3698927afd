import type { Clock } from '../../foundation/time/clock.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { ListResult } from '../../resource/storage/storage.ts';
import { type ApiResponse, encodedResponse } from '../http/answer.ts';
import type { Representation } from '../http/media-type.ts';
import { JSON_TYPE } from '../http/request-body.ts';
import { GenerationCache } from './generation-cache.ts';
import { partialMetadata } from './partial-metadata.ts';
import { bookmarkTable, type IncludeObject, includeObjectOf, tableOf } from './table.ts';

/** The form in which one client gets the objects of one kind. */
export interface View extends Representation {
  readonly kind: Kind;
  readonly includeObject: IncludeObject;
}

/** Characters of JSON in the cache: the lists and events of a few thousand objects. */
const MAX_JSON_CHARACTERS = 16 * 1024 * 1024;

/** Lists of this length and more are sent in parts. */
const MIN_ITEMS_IN_PARTS = 2000;
/** Characters of a part: enough to be worth sending, and written within a few milliseconds. */
const PART_CHARACTERS = 1024 * 1024;

/** Writes objects in the form that a client requests. A stored object is serialised once for all clients. */
export class Presenter {
  readonly #clock: Clock;
  readonly #json = new GenerationCache<string>(MAX_JSON_CHARACTERS, (text) => text.length);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  view(kind: Kind, representation: Representation, query: URLSearchParams): View {
    return { ...representation, kind, includeObject: includeObjectOf(query.get('includeObject')) };
  }

  object(view: View, status: number, object: Stored): ApiResponse {
    return encodedResponse(status, `${this.json(view, object)}\n`, view.encoding);
  }

  list(view: View, { items, ...metadata }: ListResult<KubernetesObject>): ApiResponse {
    const { kind, as } = view;
    if (as === 'table') {
      const table = tableOf(kind, items, { now: this.#clock.now(), includeObject: view.includeObject, metadata });
      return encodedResponse(200, `${JSON.stringify(table)}\n`, view.encoding);
    }
    const head =
      as === 'partial'
        ? { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' }
        : { kind: `${kind.kind}List`, apiVersion: kind.apiVersion };
    const start = `${JSON.stringify({ ...head, metadata }).slice(0, -1)},"items":[`;
    if (items.length > MIN_ITEMS_IN_PARTS && view.encoding === 'json')
      return { status: 200, contentType: JSON_TYPE, body: this.#parts(view, start, items) };
    const texts = items.map((item) => this.json(view, item));
    return encodedResponse(200, `${start}${texts.join(',')}]}\n`, view.encoding);
  }

  /** A list that is too long for the cache, some objects at a time. */
  *#parts(view: View, start: string, items: readonly Stored[]): Generator<string> {
    let part = start;
    for (const [index, item] of items.entries()) {
      const known = view.as === 'object' ? (this.#json.peek(item) ?? JSON.stringify(item)) : this.json(view, item);
      part += index === 0 ? known : `,${known}`;
      if (part.length < PART_CHARACTERS) continue;
      yield part;
      part = '';
    }
    yield `${part}]}\n`;
  }

  /** The JSON of one object. `later` leaves out what earlier lines of a watch contained. */
  json(view: View, object: Stored, later = false): string {
    if (view.as === 'object') return this.#json.get(object, JSON.stringify);
    if (view.as === 'partial') return JSON.stringify(partialMetadata(object));
    const { includeObject } = view;
    const { resourceVersion } = object.metadata;
    const options = { now: this.#clock.now(), includeObject, metadata: { resourceVersion }, withoutColumns: later };
    return JSON.stringify(tableOf(view.kind, [object], options));
  }

  /** Returns the JSON of a bookmark: an object with only the version of the list. */
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
