import type { ElectionTimes } from '../../controller/leader-election/election-config.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import type { ClusterAccess } from '../../kubernetes/access/cluster-access.ts';
import type { Resolver } from '../../package/plan/ports/resolver.ts';
import type { ObjectKey } from '../../resource/object/object.ts';
import type { DataFolder } from '../data/data-folder.ts';
import type { FunctionSettings } from '../functions/function-settings.ts';
import type { ListenAddress } from '../service/listen-address.ts';
import type { LogSink } from '../service/log/log-entry.ts';
import type { SigningChoice } from '../trust/signing-choice.ts';

/** The part of the work of an installation: each role has a Lease of its own. */
export type Role = 'both' | 'api' | 'controllers';

export interface ReplicaOptions extends ElectionTimes {
  readonly access: ClusterAccess;
  readonly role: Role;
  /** Of the objects of this installation. */
  readonly namespace: string;
  readonly identity: string;
  /** The pod of this process; absent outside of a cluster. */
  readonly pod?: ObjectKey | undefined;
  /** Mirrors and caches; may be lost at any time. */
  readonly cache: DataFolder;
  readonly listen: ListenAddress;
  readonly webhooks?: ListenAddress | undefined;
  /** Name of the Service. */
  readonly service: string;
  /** Default: the Secret that Sluice creates. */
  readonly signing: SigningChoice;
  readonly network: GitNetwork;
  readonly functions: FunctionSettings;
  readonly resolvers: readonly Resolver[];
  readonly disabled: readonly string[];
  /** Bytes; see the repository controller. */
  readonly diskBudget?: number | undefined;
  readonly log: LogSink;
  /** Aborts when the process has to end. */
  readonly signal: AbortSignal;
  /** Ends the process at once: another replica may lead now. */
  readonly exit: (code: number) => void;
}
