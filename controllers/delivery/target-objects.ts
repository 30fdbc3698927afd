import type { DesiredRevision } from '../../src/delivery/desired.ts';
import { packageKey } from '../../src/delivery/select-revisions.ts';
import { inSlices } from '../../src/foundation/in-slices.ts';
import { keyOf, keyText } from '../../src/resource/object/object.ts';

interface Named {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
}

interface Contents {
  /** What the packages were built from. */
  readonly trees: string;
  /** Packages by the identity of an object; mostly one. */
  readonly packages: ReadonlyMap<string, readonly string[]>;
}

/** Which packages ship which objects to a target, as of its last delivery. In memory only: the first delivery fills it. */
export class TargetObjects {
  readonly #byTarget = new Map<string, Contents>();

  /** Takes in what a target delivers now. */
  async set(target: Named, chosen: ReadonlyMap<string, DesiredRevision>): Promise<void> {
    const key = keyText(keyOf(target));
    const trees = [...chosen].map(([name, { sourceTree }]) => `${name} ${sourceTree}`).join('\n');
    if (this.#byTarget.get(key)?.trees === trees) return;
    const packages = new Map<string, readonly string[]>();
    await inSlices(chosen.values(), (revision) => {
      const name = packageKey(revision);
      for (const identity of revision.built.manifests?.places.keys() ?? [])
        packages.set(identity, [...(packages.get(identity) ?? []), name]);
    });
    this.#byTarget.set(key, { trees, packages });
  }

  forget(target: Named): void {
    this.#byTarget.delete(keyText(keyOf(target)));
  }

  /** Keys (`packageKey`) of the packages that ship an object to a target; empty while nothing is known of it. */
  packagesOf(target: Named, identity: string): readonly string[] {
    return this.#byTarget.get(keyText(keyOf(target)))?.packages.get(identity) ?? [];
  }
}
