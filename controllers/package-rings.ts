import type { Informer } from '../src/controller/informer.ts';
import type { Source } from '../src/controller/source.ts';
import { findCycle } from '../src/foundation/find-cycle.ts';
import { isSluiceError } from '../src/foundation/sluice-error.ts';
import { isPublished, type PackageRevision, revisionId } from '../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../src/package/store/revision-store.ts';
import { type PackageVariant, packageVariantKind } from '../src/resource/kinds/porch/package-variant.ts';
import { type Repository, repositoryKind } from '../src/resource/kinds/porch/repository.ts';
import type { ObjectKey } from '../src/resource/object/object.ts';
import type { PolicyScope } from './proposal/pending-revisions.ts';
import {
  hasDependencies,
  isDependency,
  isDependencyType,
  lockOf,
  namedPackages,
} from './revision/resolvers/dependency/dependency-object.ts';

const INDEX = 'package-rings';

export interface PackageRingsOptions {
  readonly store: Pick<RevisionStore, 'list' | 'content'>;
  /** The Repositories of other namespaces that share packages. Default: none. */
  readonly sharing?: PolicyScope['sharing'];
}

/** Packages each of which leads to the next revision of the one before it. */
export interface PackageRing {
  /** The packages as `placeText` names them, beginning and ending with the one that was examined. */
  readonly places: readonly string[];
  /** `edge/a is cloned from edge/b, which requires edge/a`. */
  readonly text: string;
}

/** A package in a Repository. */
interface Place {
  readonly namespace: string;
  readonly repo: string;
  readonly path: string;
}

/** The next revision of `to` leads to one of the package with this edge. */
interface Edge {
  readonly relation: 'is cloned from' | 'requires';
  readonly to: string;
}

/**
 * Finds packages whose revisions lead to each other without end, along variants and Dependency objects together. Only what a package is cloned
 * from or requires, directly or not, is looked up, in indexes. A package in Git is one package, in whichever namespaces its repository is
 * registered.
 */
export class PackageRings {
  readonly #store: PackageRingsOptions['store'];
  readonly #sharing: NonNullable<PolicyScope['sharing']>;
  #variants: Informer<PackageVariant> | undefined;
  #repositories: Informer<Repository> | undefined;

  constructor({ store, sharing = () => [] }: PackageRingsOptions) {
    this.#store = store;
    this.#sharing = sharing;
  }

  /** Makes the index, and wakes for nothing. */
  readonly source: Source<ObjectKey> = {
    start: ({ informer }) => {
      this.#repositories = informer(repositoryKind);
      this.#variants = informer(packageVariantKind);
      this.#variants.addIndex(INDEX, (variant) =>
        variant.metadata.deletionTimestamp === undefined ? [placeText(placeOf(variant, 'downstream'))] : [],
      );
      return () => {
        this.#repositories = undefined;
        this.#variants = undefined;
      };
    },
  };

  /** The ring that a variant closes: other packages count by what is published. Undefined if there is none. */
  ofVariant(variant: PackageVariant): Promise<PackageRing | undefined> {
    return this.#find(placeOf(variant, 'downstream'), [edgeOf(variant)], false);
  }

  /** The ring that a package closes which requires others, named `<repository>/<package>`: their drafts count too. Undefined if there is none. */
  ofConsumer({ namespace, key }: PackageRevision, providers: readonly string[]): Promise<PackageRing | undefined> {
    const place = { namespace, repo: key.repository, path: key.package };
    return this.#find(place, requirements(namespace, providers), true);
  }

  /** The variants whose downstream package is the one at a place. */
  variantsOf(place: string): PackageVariant[] {
    return this.#samePlaces(parsePlace(place)).flatMap((same) => this.#variants?.byIndex(INDEX, same) ?? []);
  }

  async #find(place: Place, edges: readonly Edge[], withDrafts: boolean): Promise<PackageRing | undefined> {
    const [own, ...copies] = this.#samePlaces(place);
    const relations = new Map<string, Edge['relation']>();
    const places = await findCycle(own, async (node) => {
      const found = node === own ? edges : await this.#edgesOf(node, withDrafts);
      return found.map(({ relation, to }) => {
        const next = copies.includes(to) ? own : to;
        relations.set(`${node} ${next}`, relation);
        return next;
      });
    });
    if (places === undefined) return undefined;
    const texts = places.map((node, at) => {
      const { namespace, repo, path } = parsePlace(node);
      const name = `${repo}/${path}${namespace === place.namespace ? '' : ` of namespace ${namespace}`}`;
      return at === 0 ? name : `${relations.get(`${places[at - 1]} ${node}`)} ${name}`;
    });
    const [name, first, ...others] = texts;
    return { places, text: [`${name} ${first}`, ...others].join(', which ') };
  }

  async #edgesOf(node: string, withDrafts: boolean): Promise<Edge[]> {
    const edges = this.variantsOf(node).map(edgeOf);
    for (const same of this.#samePlaces(parsePlace(node)))
      edges.push(...(await this.#requirementsOf(same, withDrafts)));
    return edges;
  }

  /** Of a publication, what it has locked; of a draft, what its verdicts name: what it has locked, and what it waits for. */
  async #requirementsOf(node: string, withDrafts: boolean): Promise<Edge[]> {
    const { namespace, repo, path } = parsePlace(node);
    const ids: string[] = [];
    for (const row of this.#store.list({ repository: `${namespace}/${repo}`, package: path })) {
      if (isPublished(row)) ids.push(...(row.latest ? await this.#lockedBy(row) : []));
      else if (withDrafts)
        for (const { type, external } of row.record?.verdicts ?? [])
          if (isDependencyType(type)) ids.push(...namedPackages(external));
    }
    return requirements(namespace, ids);
  }

  /** Only a package with a condition of a Dependency is read. */
  async #lockedBy(row: PackageRevision): Promise<string[]> {
    if (!hasDependencies(row)) return [];
    try {
      const content = await this.#store.content(revisionId(row));
      return content
        .objects()
        .filter(isDependency)
        .flatMap((object) => lockOf(object).map((one) => `${one.repository}/${one.package}`));
    } catch (error) {
      // Deleted meanwhile, which wakes its consumers.
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'LimitExceeded')) return [];
      throw error;
    }
  }

  /** A place, and those of the same package in the repositories of other namespaces. */
  #samePlaces(place: Place): [string, ...string[]] {
    const key = { namespace: place.namespace, name: place.repo };
    const directory = this.#repositories?.get(key)?.spec.git?.directory;
    const path = directory === undefined ? undefined : inDirectory(directory, place.path);
    const others = path === undefined ? [] : this.#sharing(key);
    return [
      placeText(place),
      ...others.flatMap(({ namespace = '', name }) => {
        const prefix = inDirectory(this.#repositories?.get({ namespace, name })?.spec.git?.directory ?? '/', '');
        if (path?.startsWith(prefix) !== true) return [];
        return [placeText({ namespace, repo: name, path: path.slice(prefix.length) })];
      }),
    ];
  }
}

/** Names of objects have no slash. */
export function placeText({ namespace, repo, path }: Place): string {
  return `${namespace}/${repo}/${path}`;
}

function placeOf({ metadata: { namespace = '' }, spec }: PackageVariant, side: 'upstream' | 'downstream'): Place {
  const { repo, package: path } = spec[side];
  return { namespace, repo, path };
}

function parsePlace(text: string): Place {
  const [namespace = '', repo = '', ...path] = text.split('/');
  return { namespace, repo, path: path.join('/') };
}

function edgeOf(variant: PackageVariant): Edge {
  return { relation: 'is cloned from', to: placeText(placeOf(variant, 'upstream')) };
}

function requirements(namespace: string, ids: readonly string[]): Edge[] {
  return ids.map((id) => ({ relation: 'requires', to: `${namespace}/${id}` }));
}

function inDirectory(directory: string, path: string): string {
  return directory === '/' ? path : `${directory}/${path}`;
}
