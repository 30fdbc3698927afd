import { SluiceError } from '../../foundation/sluice-error.ts';
import { apiVersionOf } from '../../resource/object/object.ts';
import { acceptedTypes, type MediaType } from '../http/media-type.ts';
import { AGGREGATED_VERSIONS, type AggregatedVersion, aggregatedDiscovery } from './discovery/aggregated-discovery.ts';
import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './discovery/discovery.ts';
import { type Served, type ServedGroup, type ServedVersion, servedGroups } from './discovery/served.ts';
import { versionInfo } from './discovery/version-info.ts';
import { Document } from './document.ts';
import { openApiV2 } from './openapi/openapi-v2.ts';
import { openApiV2Protobuf } from './openapi/openapi-v2-protobuf.ts';
import { openApiV3, openApiV3Index, openApiV3Key } from './openapi/openapi-v3.ts';

export interface DocumentCacheOptions {
  /** The served kinds and reviews. */
  served(): Served;
  /** A number that changes whenever `served` does. */
  generation(): number;
  /** The version of Sluice. */
  readonly version: string;
  /** The machine, as in `linux/amd64`. */
  readonly platform: string;
  /** Further fields of the list of resources of a group, by its name. */
  readonly fields?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** One form of the document at a path. */
interface Form {
  accepts(clause: MediaType): boolean;
  /** Builds the document on the first call. */
  document(): Document;
}

interface KnownVersion {
  readonly served: ServedVersion;
  readonly document: Document;
}

const JSON_TYPES = ['application/json', 'application/*', '*/*'];
const PROTOBUF_V2 = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
const PROTOBUF_V2_TYPES = [PROTOBUF_V2, 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'];

/**
 * The documents that describe the API to clients: discovery, OpenAPI and the version. Each is built for the first request and kept
 * until what is served changes.
 */
export class DocumentCache {
  readonly #options: DocumentCacheOptions;
  #generation = Number.NaN;
  #forms: ReadonlyMap<string, readonly Form[]> = new Map();
  /** The OpenAPI v3 documents, which outlive a change elsewhere: users may add many kinds one by one. */
  #versions = new Map<string, KnownVersion>();

  constructor(options: DocumentCacheOptions) {
    this.#options = options;
  }

  /**
   * The document at a path, such as `/apis` or `/openapi/v2`, in the form that an Accept header wants most. Undefined if
   * there is none at the path; NotAcceptable if there is none of a form that is wanted.
   */
  find(path: string, accept: string | undefined): Document | undefined {
    this.#refresh();
    const forms = this.#forms.get(path);
    if (forms === undefined) return undefined;
    for (const clause of acceptedTypes(accept)) {
      const form = forms.find((candidate) => candidate.accepts(clause));
      if (form !== undefined) return form.document();
    }
    throw new SluiceError('NotAcceptable', 'only the following media types are accepted: application/json');
  }

  #refresh(): void {
    const generation = this.#options.generation();
    if (generation === this.#generation) return;
    const groups = servedGroups(this.#options.served());
    this.#forms = new Map([...this.#discovery(groups), ...this.#openApi(groups)]);
    this.#generation = generation;
  }

  *#discovery(groups: readonly ServedGroup[]): Generator<[string, Form[]]> {
    const { version, platform, fields = {} } = this.#options;
    const core = groups.filter((group) => group.name === '');
    const others = groups.filter((group) => group.name !== '');
    yield ['/version', [json(() => versionInfo(version, platform))]];
    yield ['/api', [...aggregated(core), json(() => apiVersions(groups))]];
    yield ['/apis', [...aggregated(others), json(() => apiGroupList(groups))]];
    for (const group of others) yield [`/apis/${group.name}`, [json(() => apiGroup(group))]];
    for (const served of groups.flatMap((group) => group.versions)) {
      const path = `/${served.group === '' ? 'api' : 'apis'}/${apiVersionOf(served)}`;
      yield [path, [json(() => ({ ...apiResourceList(served), ...fields[served.group] }))]];
    }
  }

  *#openApi(groups: readonly ServedGroup[]): Generator<[string, Form[]]> {
    const { version } = this.#options;
    const all = groups.flatMap((group) => group.versions);
    const old = this.#versions;
    this.#versions = new Map();
    const documents = all.map((served) => {
      const key = openApiV3Key(served);
      const known = old.get(key);
      if (known !== undefined && sameResources(known.served, served)) this.#versions.set(key, known);
      return { key, form: jsonForm(() => this.#openApiV3(key, served)) };
    });
    for (const { key, form } of documents) yield [`/openapi/v3/${key}`, [form]];
    const hashes = () => documents.map(({ key, form }) => [key, form.document().hash] as const);
    yield ['/openapi/v3', [json(() => openApiV3Index(hashes()))]];
    yield [
      '/openapi/v2',
      [
        json(() => openApiV2(all, version)),
        {
          accepts: ({ type }) => PROTOBUF_V2_TYPES.includes(type),
          document: once(() => new Document(PROTOBUF_V2, openApiV2Protobuf(openApiV2(all, version)))),
        },
      ],
    ];
  }

  #openApiV3(key: string, served: ServedVersion): Document {
    const known = this.#versions.get(key);
    if (known !== undefined) return known.document;
    const document = jsonDocument(openApiV3(served, this.#options.version));
    this.#versions.set(key, { served, document });
    return document;
  }
}

function json(build: () => object): Form {
  return jsonForm(once(() => jsonDocument(build())));
}

function jsonForm(document: () => Document): Form {
  // A client that requires another JSON form requests it with `as`.
  return { accepts: ({ type, parameters }) => JSON_TYPES.includes(type) && !parameters.has('as'), document };
}

function aggregated(groups: readonly ServedGroup[]): Form[] {
  return AGGREGATED_VERSIONS.map((version: AggregatedVersion) => ({
    accepts: ({ type, parameters }) =>
      type === 'application/json' &&
      parameters.get('g') === 'apidiscovery.k8s.io' &&
      parameters.get('v') === version &&
      parameters.get('as') === 'APIGroupDiscoveryList',
    document: once(() =>
      jsonDocument(
        aggregatedDiscovery(groups, version),
        `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
      ),
    ),
  }));
}

function jsonDocument(value: object, contentType = 'application/json'): Document {
  return new Document(contentType, Buffer.from(JSON.stringify(value)));
}

function sameResources(left: ServedVersion, right: ServedVersion): boolean {
  return (
    left.resources.length === right.resources.length &&
    left.resources.every((resource, index) => {
      const other = right.resources[index];
      return (
        resource.source === other?.source &&
        JSON.stringify([resource.verbs, resource.subResources]) === JSON.stringify([other.verbs, other.subResources])
      );
    })
  );
}

function once<T>(build: () => T): () => T {
  let built: { readonly value: T } | undefined;
  return () => {
    built ??= { value: build() };
    return built.value;
  };
}
