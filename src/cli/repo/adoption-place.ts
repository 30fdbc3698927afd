import type { Session } from '../../app/session/session.ts';

/** Where an adoption works: a data folder, or an installation in a cluster. */
export interface AdoptionPlace {
  readonly session: Session;
  /** Of repositories, where the command line names none. */
  readonly namespace: string;
  readonly isCluster: boolean;
  /** Throws where a repository at this address cannot be opened without writing to it. */
  expectKnown(address: string): void;
  /** To be called before the adoption is signed: makes its key known. */
  beforeWrite(): Promise<void>;
}
