import { type Kptfile, type ReadResult, readKptfile } from '../../../kptfile-schema/index.ts';

/**
 * A Kptfile as read, or why it cannot be. It is kept as the bytes of its JSON, a quarter of the size of the objects and outside of
 * what is searched for garbage, and made anew for whoever asks: most of tens of thousands are looked at by nobody.
 */
export class KptfileFact {
  static readonly NONE = new KptfileFact(undefined, 'there is no Kptfile');
  static readonly LOST = new KptfileFact(undefined, 'the Kptfile is missing from the object store');

  /** The Kptfile as JSON in one line; undefined if there is a problem. */
  readonly json: Buffer | undefined;
  readonly problem: string | undefined;
  /** What whoever asked last may still hold. */
  #made: WeakRef<Kptfile> | undefined;

  private constructor(json: Buffer | undefined, problem: string | undefined) {
    this.json = json;
    this.problem = problem;
  }

  static read(text: Buffer): KptfileFact {
    const result: ReadResult = readKptfile(text);
    return result.ok
      ? KptfileFact.ofJson(Buffer.from(JSON.stringify(result.kptfile)))
      : KptfileFact.ofProblem(result.error.message);
  }

  static ofJson(json: Buffer): KptfileFact {
    return new KptfileFact(json, undefined);
  }

  static ofProblem(problem: string): KptfileFact {
    return new KptfileFact(undefined, problem);
  }

  /** The same object for all who hold it at a time. */
  get kptfile(): Kptfile | undefined {
    if (this.json === undefined) return undefined;
    let kptfile = this.#made?.deref();
    if (kptfile === undefined) {
      kptfile = JSON.parse(this.json.toString('utf8')) as Kptfile;
      this.#made = new WeakRef(kptfile);
    }
    return kptfile;
  }
}
