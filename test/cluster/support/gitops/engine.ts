import type { KubeObject } from '../../../support/api/kube-api.ts';
import type { DeliveredPlace } from './gitops-world.ts';

/** What an engine reports of one package in a place. */
export interface PackageReport {
  /** The commit that the engine has read last. */
  readonly seen: string | undefined;
  /** The commit of which all objects are in the cluster; undefined while they differ. */
  readonly synced: string | undefined;
  readonly healthy: boolean;
  /** The words of the engine about a failure or about what it waits for. */
  readonly message: string;
  /** The object that reports; undefined if the engine has none for the package. */
  readonly object: KubeObject | undefined;
}

export interface FollowOptions {
  /** Settings that replace those of the object that syncs the place: Flux's Kustomization, the Application of each package in Argo CD. */
  readonly spec?: object;
  /** Default: an hour, so that only triggers start a sync. Argo CD has one interval for all places. */
  readonly pollInterval?: string;
  /** Syncs only commits with a good signature. */
  readonly verify?: { readonly publicKey: string; readonly keyId: string };
}

/** A GitOps engine, as the tests of delivery use it. */
export interface Engine {
  readonly name: 'Argo CD' | 'Flux';
  /** Syncs the packages of a place with the objects of `sluice target init`. */
  follow(place: DeliveredPlace, options?: FollowOptions): Promise<void>;
  /** Deletes the objects of `follow`, and with them what they created. */
  unfollow(place: DeliveredPlace): Promise<void>;
  /** Lets the engine read the branch now, as an annotation of a user does. */
  trigger(place: DeliveredPlace): Promise<void>;
  report(place: DeliveredPlace, packagePath: string): Promise<PackageReport>;
}
