import type { Kind } from '../../resource/schema/kind.ts';
import type { Registry } from '../../resource/storage/registry.ts';
import { ALL_VERBS, type Storage } from '../../resource/storage/storage.ts';
import type { RequestInfo } from '../http/request-path.ts';

/** The resource that a plural in a URL names. */
export interface ServedResource {
  readonly kind: Kind;
  readonly storage: Storage;
  readonly verbs: readonly string[];
}

/** The verbs of every sub-resource; its objects are those of the resource. */
export const SUBRESOURCE_VERBS: readonly string[] = ['get', 'patch', 'update'];

/** The same for a sub-resource whose content is computed. */
export const READ_ONLY_VERBS: readonly string[] = ['get'];

/** Finds what a URL names among the kinds of a registry, and follows the registry when kinds are added and removed. */
export class ServedResources {
  readonly #registry: Registry;
  #byUrl: ReadonlyMap<string, ServedResource> | undefined;

  constructor(registry: Registry) {
    this.#registry = registry;
    registry.onChange(() => {
      this.#byUrl = undefined;
    });
  }

  find(info: Pick<RequestInfo, 'group' | 'version' | 'resource'>): ServedResource | undefined {
    this.#byUrl ??= new Map(
      this.#registry.kinds().map((kind) => {
        const storage = this.#registry.storage(kind);
        return [urlOf(kind.group, kind.version, kind.plural), { kind, storage, verbs: storage.verbs ?? ALL_VERBS }];
      }),
    );
    return this.#byUrl.get(urlOf(info.group, info.version, info.resource));
  }
}

function urlOf(group: string, version: string, resource: string): string {
  return `${group}/${version}/${resource}`;
}
