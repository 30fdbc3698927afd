import { eventually } from '../../../support/api/eventually.ts';
import { type Answer, JSON_PATCH, type KubeApi } from '../../../support/api/kube-api.ts';

const VERSION = 'porch.kpt.dev/v1alpha1';
const COLLECTIONS = `/apis/${VERSION}/namespaces/default`;
const REVISIONS = `${COLLECTIONS}/packagerevisions`;
const CONTENTS = `${COLLECTIONS}/packagerevisionresources`;

/** Content of files by path; null removes a file of the preceding revision. */
export type Files = Readonly<Record<string, string | null>>;

/** A user who writes and approves packages of one repository through the API of Sluice. */
export class PackageAuthor {
  readonly #api: KubeApi;
  readonly #repository: string;
  /** The last published workspace of each package. */
  readonly #published = new Map<string, string>();
  /** Package and workspace of each draft, by its name. */
  readonly #drafts = new Map<string, { readonly path: string; readonly workspace: string }>();

  constructor(api: KubeApi, repository: string) {
    this.#api = api;
    this.#repository = repository;
  }

  /** Creates a draft: of the next revision if the package was published, else of the first one. Returns its name. */
  async draft(path: string, workspace: string, files: Files): Promise<string> {
    const from = this.#published.get(path);
    const task =
      from === undefined
        ? { type: 'init', init: { description: `${path} of a test` } }
        : { type: 'edit', edit: { sourceRef: { name: this.#nameOf(path, from) } } };
    const spec = {
      ...{ repository: this.#repository, packageName: path, workspaceName: workspace },
      ...{ lifecycle: 'Draft', tasks: [task] },
    };
    const body = { apiVersion: VERSION, kind: 'PackageRevision', metadata: { namespace: 'default' }, spec };
    const created = accepted(await this.#api.post(REVISIONS, body), `create ${path}`);
    const { name } = created.body.metadata;
    const content = { spec: { resources: files } };
    const write = await eventually(
      () => this.#api.patch(`${CONTENTS}/${name}`, content),
      ({ status }) => status !== 409,
    );
    accepted(write, `write ${name}`);
    this.#drafts.set(name, { path, workspace });
    return name;
  }

  /** Proposes a draft as soon as Sluice has evaluated it. */
  async propose(name: string): Promise<void> {
    await this.#step(`${REVISIONS}/${name}`, 'Proposed');
  }

  async approve(name: string): Promise<void> {
    await this.#step(`${REVISIONS}/${name}/approval`, 'Published');
    this.recordPublished(name);
  }

  /** To be called for a draft that another actor has approved: the next one of its package is its successor. */
  recordPublished(name: string): void {
    const draft = this.#drafts.get(name);
    if (draft !== undefined) this.#published.set(draft.path, draft.workspace);
  }

  /** Sets a condition of a revision to True, as a reviewer. */
  async condition(name: string, type: string): Promise<void> {
    const value = { type, status: 'True', reason: 'Reviewed', message: 'reviewed' };
    const patch = [{ op: 'add', path: '/status/conditions/-', value }];
    const answer = await eventually(
      () => this.#api.patch(`${REVISIONS}/${name}/status`, patch, JSON_PATCH),
      ({ status }) => status < 300,
    );
    accepted(answer, `set ${type} of ${name}`);
  }

  async conditionsOf(name: string): Promise<unknown> {
    const { body } = accepted(await this.#api.get(`${REVISIONS}/${name}`), `read ${name}`);
    return (body.status as { readonly conditions?: unknown } | undefined)?.conditions;
  }

  /** Publishes the next revision of a package. Returns its name. */
  async publish(path: string, workspace: string, files: Files): Promise<string> {
    const name = await this.draft(path, workspace, files);
    await this.propose(name);
    await this.approve(name);
    return name;
  }

  /** Deletes a published revision, as both steps permit it. */
  async remove(name: string): Promise<void> {
    await this.#step(`${REVISIONS}/${name}/approval`, 'DeletionProposed');
    accepted(await this.#api.delete(`${REVISIONS}/${name}`), `delete ${name}`);
  }

  async #step(path: string, lifecycle: string): Promise<void> {
    const answer = await eventually(
      () => this.#api.patch(path, { spec: { lifecycle } }),
      ({ status }) => status < 300,
    );
    accepted(answer, `${lifecycle} ${path}`);
  }

  #nameOf(path: string, workspace: string): string {
    return [this.#repository, ...path.split('/'), workspace].join('.');
  }
}

function accepted<Body>(answer: Answer<Body>, what: string): Answer<Body> {
  if (answer.status >= 300) throw new Error(`${what}: ${answer.status} ${answer.text}`);
  return answer;
}
