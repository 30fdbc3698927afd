import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sluice } from '../support/cli.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { Up } from '../support/up.ts';

const quickstart = fileURLToPath(new URL('../../examples/quickstart', import.meta.url));
const REVIEWED = 'shop.example.com/CapacityReviewed';
const published = '--for=jsonpath={.spec.lifecycle}=Published';
const approval = '--subresource=approval --type=merge -p {"spec":{"lifecycle":"Published"}}';
const propose = '--type=merge -p {"spec":{"lifecycle":"Proposed"}}';

let folder: string;
let up: Up;
let kubectl: Kubectl;

/** A draft of a package as kubectl sends it. */
function revision(packageName: string, workspaceName: string, task: object): string {
  return JSON.stringify({
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { namespace: 'default', name: `packages.${packageName}.${workspaceName}` },
    spec: { repository: 'packages', packageName, workspaceName, tasks: [task] },
  });
}

const config = (data: object, name = 'c') =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

const site = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'sites.example.org' },
  spec: {
    group: 'example.org',
    scope: 'Namespaced',
    names: { kind: 'Site', listKind: 'SiteList', plural: 'sites', singular: 'site', shortNames: ['st'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: 'City', type: 'string', jsonPath: '.spec.city' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  city: {
                    type: 'string',
                    'x-kubernetes-validations': [{ rule: 'self != "Atlantis"', message: 'there is no Atlantis' }],
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

describe('kubectl and an up with the quick start', skipFor(!hasKubectl() && 'kubectl is not installed'), () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-kubectl-'));
    const data = join(folder, 'data');
    up = new Up(data);
    await up.said(/kubectl --kubeconfig/);
    kubectl = new Kubectl(join(data, 'kubeconfig'), join(folder, 'cache'));
    await kubectl.ok(['apply', '-f', quickstart]);
    for (const name of ['edge-monitoring', 'upf-edge'])
      await kubectl.ok(`wait rpkg/packages.${name}.v1 ${published} --timeout=60s`);
    await kubectl.ok('wait rpkg/packages.web-shop.v1 --for=jsonpath={.spec.lifecycle}=Proposed --timeout=60s');
    await kubectl.ok('wait dt --all --for=condition=Ready --timeout=60s');
  });
  afterAll(async () => {
    up.child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  test('reports clearly what is not served', async () => {
    expect(await kubectl.fails('get nodes')).toBe(`error: the server doesn't have a resource type "nodes"`);
    expect(await kubectl.fails('logs web')).toContain('pods "web" not found');
    expect(await kubectl.fails('rollout status deploy/web')).toContain(
      `the server doesn't have a resource type "deploy"`,
    );
    expect(await kubectl.fails('create deployment web --image=web')).toContain('could not find the requested resource');
    expect(await kubectl.fails('delete packagerevisionresources packages.web.v1')).toContain(
      'delete is not supported on resources of kind "packagerevisionresources.porch.kpt.dev"',
    );
    expect(await kubectl.fails('create token default')).toContain('could not find the requested resource');
  });

  test('applies the quick start again without an error and without an edit', async () => {
    const before = await kubectl.ok('get rpkg -o jsonpath={.items[*].status.selfLock.git.commit}');
    const { code, stderr } = await kubectl.run(['apply', '-f', quickstart]);
    expect(code).toBe(0);
    expect(stderr).toContain(
      'packages.upf-edge.v1 (Published) was left as it is: it was made from these files already',
    );
    expect(await kubectl.ok('get rpkg -o jsonpath={.items[*].status.selfLock.git.commit}')).toBe(before);
    const changed = '{"spec":{"resources":{"new.yaml":"a: 1"}}}';
    expect(
      await kubectl.fails(
        `patch packagerevisionresources packages.upf-edge.v1 --type=merge -p ${changed.replace(' ', '')}`,
      ),
    ).toContain('lifecycle value "Published"; package must be Draft');
  });

  test('opens a gate and approves, and lists published revisions in every format', async () => {
    const shop = 'packages.web-shop.v1';
    expect(await kubectl.fails(`patch rpkg ${shop} ${approval}`)).toContain(`gate ${REVIEWED} is closed`);
    const condition = { type: REVIEWED, status: 'True', message: 'load test is fine' };
    const { apiVersion, kind, metadata } = JSON.parse(revision('web-shop', 'v1', {}));
    const input = JSON.stringify({ apiVersion, kind, metadata, status: { conditions: [condition] } });
    expect(await kubectl.ok('apply --server-side --subresource=status -f -', { input })).toMatch(/serverside-applied$/);
    expect(await kubectl.ok(`wait rpkg ${shop} --for=condition=${REVIEWED}`)).toMatch(/condition met$/);
    expect(await kubectl.ok(`wait rpkg ${shop} --for=condition=apps/v1.Deployment.storefront`)).toMatch(/met$/);
    const path = `/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/${shop}/approval`;
    const object = JSON.parse(await kubectl.ok(`get --raw ${path}`));
    const file = join(folder, 'approval.json');
    await writeFile(file, JSON.stringify({ ...object, spec: { ...object.spec, lifecycle: 'Published' } }));
    expect(JSON.parse(await kubectl.ok(`replace --raw ${path} -f ${file}`)).spec.revision).toBe(1);
    await expect
      .poll(() => kubectl.ok(`events --for packagerevision/${shop}`))
      .toMatch(/Approved .* Published v1, by admin/);
    expect(await kubectl.ok(`events --for packagerevision/${shop}`)).toContain(
      `condition ${REVIEWED} True, by admin: load test is fine`,
    );

    expect(await kubectl.ok('get rpkg packages.web-shop.v1')).toMatch(
      /^NAME +PACKAGE +WORKSPACENAME +REVISION +LATEST +LIFECYCLE +REPOSITORY\npackages.web-shop.v1 +web-shop +v1 +1 +true +Published +packages$/,
    );
    const names = 'packages.edge-monitoring.v1\npackages.upf-edge.v1\npackages.web-shop.v1';
    const column = '--no-headers -o custom-columns=NAME:.metadata.name';
    for (const selection of [
      '-l kpt.dev/latest-revision=true',
      '--field-selector spec.revision=1',
      '--chunk-size=1 -l kpt.dev/latest-revision',
    ])
      expect(await kubectl.ok(`get rpkg ${selection} ${column}`)).toBe(names);
    expect(await kubectl.ok('get rpkg --sort-by=.metadata.name -o name')).toMatch(
      /^packagerevision.porch.kpt.dev\/packages.edge/,
    );
    expect(await kubectl.ok('get rpkg packages.web-shop.v1 -o yaml')).toContain('lifecycle: Published\n');
    expect(JSON.parse(await kubectl.ok('get repo,dt -A -o json')).items).toHaveLength(3);
    expect(await kubectl.ok('get all -A -o name')).toContain('repository.config.porch.kpt.dev/packages');
    expect(await kubectl.fails('get rpkg nothing')).toBe(
      'Error from server (NotFound): packagerevisions.porch.kpt.dev "nothing" not found',
    );
    expect(await kubectl.fails('get rpkg --field-selector spec.nothing=1')).toContain('is not a known field selector');
  });

  test('describes an object of every kind', async () => {
    const lists = (await kubectl.ok('api-resources --verbs=list -o name')).split('\n');
    const names = await Promise.all(lists.map((kind) => kubectl.ok(`get ${kind} -A -o name`)));
    const one = names.flatMap((list) => (list === '' ? [] : [list.split('\n')[0] ?? '']));
    expect(one.length).toBeGreaterThan(12);
    for (const name of one) {
      const { code, stdout, stderr } = await kubectl.run(`describe ${name}`);
      expect([name, code, stderr]).toEqual([name, 0, '']);
      expect(stdout).toMatch(new RegExp(`^Name: +${name.slice(name.indexOf('/') + 1).replaceAll('.', '\\.')}$`, 'm'));
    }
  });

  test('creates, changes and removes objects', async () => {
    expect(await kubectl.ok('create secret generic s --from-literal=password=hunter2')).toBe('secret/s created');
    expect(await kubectl.ok('describe secret s')).toContain('password:  7 bytes');
    expect(await kubectl.ok('apply -f -', { input: config({ a: '1', b: '2' }) })).toBe('configmap/c created');
    expect(await kubectl.ok('apply -f -', { input: config({ a: '1', b: '2' }) })).toBe('configmap/c unchanged');
    expect((await kubectl.run('diff -f -', { input: config({ a: '2' }) })).stdout).toMatch(/^- {2}b: "2"$/m);
    expect(await kubectl.ok('apply -f -', { input: config({ a: '2' }) })).toBe('configmap/c configured');
    expect(await kubectl.ok('get cm c -o jsonpath={.data}')).toBe('{"a":"2"}');
    const input = config({ a: 'three' });
    expect(await kubectl.fails('apply --server-side --field-manager=b -f -', { input })).toContain(
      'conflict with "kubectl-client-side-apply" using v1: .data.a',
    );
    expect(await kubectl.ok('apply --server-side --force-conflicts -f -', { input })).toMatch(/serverside-applied$/);
    expect(await kubectl.ok('edit cm c', { KUBE_EDITOR: 'sed -i s/three/four/' })).toBe('configmap/c edited');
    expect(await kubectl.ok('patch cm c -p {"data":{"b":"5"}}')).toBe('configmap/c patched');
    expect(await kubectl.fails('patch cm c --type=json -p [{"op":"remove","path":"/data/z"}]')).toContain('/data/z');
    expect(await kubectl.ok('replace -f -', { input: config({ z: '1' }) })).toBe('configmap/c replaced');
    expect(await kubectl.ok('label cm c tier=x')).toBe('configmap/c labeled');
    expect(await kubectl.fails('label cm c tier=y')).toContain('already has a value (x), and --overwrite is false');
    expect(await kubectl.ok('annotate cm c note=hello')).toBe('configmap/c annotated');
    expect(await kubectl.ok('get cm -l tier=x -o jsonpath={.items[*].data}')).toBe('{"z":"1"}');
    expect(await kubectl.ok('delete cm -l tier=x')).toBe('configmap "c" deleted');
    expect(await kubectl.ok('delete cm c --ignore-not-found')).toBe('');
    expect(await kubectl.ok('create cm c --from-literal=a=b --dry-run=server')).toBe(
      'configmap/c created (server dry run)',
    );
    expect(await kubectl.fails('delete cm c')).toContain('configmaps "c" not found');
    expect(await kubectl.ok('create ns team')).toBe('namespace/team created');
    expect(await kubectl.ok('create cm c -n team --from-literal=a=b')).toBe('configmap/c created');
    expect(await kubectl.ok('delete ns team')).toBe('namespace "team" deleted');
    expect(await kubectl.fails('create cm c -n team --from-literal=a=b')).toContain('namespaces "team" not found');
    expect(await kubectl.fails('delete ns default')).toContain('this namespace may not be deleted');
  });

  test('watches, and waits for an end', async () => {
    const watch = kubectl.start(['get', 'cm', '-w', '--output-watch-events', '--no-headers']);
    let seen = '';
    watch.stdout?.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
    try {
      // The order of both does not matter: a list shows the object as added too.
      await kubectl.ok('create cm w --from-literal=a=b');
      await expect.poll(() => seen).toMatch(/^ADDED +w +1 +\S+$/m);
      const gone = kubectl.ok('wait --for=delete cm/w --timeout=20s');
      await kubectl.ok('label cm w a=b');
      await kubectl.ok('delete cm w');
      expect(await gone).toBe('configmap/w condition met');
      await expect.poll(() => seen).toMatch(/^ADDED .*\nMODIFIED .*\nDELETED +w /m);
    } finally {
      watch.kill();
    }
  });

  test('creates, edits, clones and upgrades packages, and deletes them by their rules', async () => {
    const create = (input: string) => kubectl.ok('create -f -', { input });
    expect(await create(revision('db', 'v1', { type: 'init', init: { description: 'A database' } }))).toMatch(
      /created$/,
    );
    const KUBE_EDITOR = 'sed -i s/A.database/A.fine.database/';
    expect(await kubectl.ok('edit packagerevisionresources packages.db.v1', { KUBE_EDITOR })).toMatch(/edited$/);
    expect(
      await kubectl.fails(
        'patch packagerevisionresources packages.db.v1 --type=merge -p {"spec":{"resources":{"Kptfile":"a:["}}}',
      ),
    ).toMatch(/^The request is invalid: Kptfile: .+/m);
    const kptfile = await kubectl.ok(
      'get packagerevisionresources packages.db.v1 -o jsonpath={.spec.resources.Kptfile}',
    );
    expect(kptfile).toContain('description: A.fine.database');
    expect(kptfile).toContain('reason: RenderSuccess');
    const publish = async (name: string) => {
      await kubectl.ok(`patch rpkg ${name} ${propose}`);
      await kubectl.ok(`patch rpkg ${name} ${approval}`);
    };
    expect(await kubectl.fails(`patch rpkg packages.db.v1 ${approval}`)).toContain(
      'only Proposed packages can be approved',
    );
    await publish('packages.db.v1');
    await create(revision('db', 'v2', { type: 'edit', edit: { sourceRef: { name: 'packages.db.v1' } } }));
    await create(
      revision('cache', 'v1', { type: 'clone', clone: { upstreamRef: { upstreamRef: { name: 'packages.db.v1' } } } }),
    );
    await publish('packages.cache.v1');
    await kubectl.ok([
      'patch',
      'packagerevisionresources',
      'packages.db.v2',
      '--type=merge',
      '-p',
      '{"spec":{"resources":{"new.yaml":"a: 1\\n"}}}',
    ]);
    await publish('packages.db.v2');
    const upgrade = {
      oldUpstreamRef: { name: 'packages.db.v1' },
      newUpstreamRef: { name: 'packages.db.v2' },
      localPackageRevisionRef: { name: 'packages.cache.v1' },
    };
    await create(revision('cache', 'v2', { type: 'upgrade', upgrade }));
    expect(
      await kubectl.ok('get packagerevisionresources packages.cache.v2 -o jsonpath={.spec.resources.new\\.yaml}'),
    ).toBe('a: 1');
    expect(await kubectl.ok('delete rpkg packages.cache.v2')).toMatch(/deleted$/);
    expect(await kubectl.fails('delete rpkg packages.cache.v1')).toContain('must be proposed for deletion');
    await kubectl.ok('patch rpkg packages.cache.v1 --type=merge -p {"spec":{"lifecycle":"DeletionProposed"}}');
    expect(await kubectl.ok('delete rpkg packages.cache.v1')).toMatch(/deleted$/);
  });

  test('permits other users what their roles allow', async () => {
    const { stdout } = await sluice(['token', 'create', 'jane', '--data', join(folder, 'data')]);
    const file = join(folder, 'jane.kubeconfig');
    await writeFile(file, stdout);
    const jane = new Kubectl(file, join(folder, 'cache-of-jane'));
    expect(await jane.fails('get rpkg')).toContain('User "jane" cannot list resource "packagerevisions"');
    await kubectl.ok('create rolebinding jane --clusterrole=sluice:package-editor --user=jane');
    await expect.poll(async () => (await jane.run('get rpkg')).code).toBe(0);
    const input = revision('queue', 'v1', { type: 'init', init: {} });
    expect(await jane.ok('create -f -', { input })).toMatch(/created$/);
    await jane.ok(`patch rpkg packages.queue.v1 ${propose}`);
    expect(await jane.fails('auth can-i update packagerevisions --subresource=approval')).toBe('');
    expect(await jane.fails(`patch rpkg packages.queue.v1 ${approval}`)).toContain('"packagerevisions/approval"');
    expect(await jane.fails('create rolebinding more --clusterrole=cluster-admin --user=jane')).toContain(
      'cannot create',
    );
    await kubectl.ok('create clusterrolebinding bob --clusterrole=sluice:approver --user=bob');
    expect(await kubectl.ok('auth can-i update packagerevisions --subresource=approval --as bob')).toBe('yes');
    expect(await kubectl.ok(`patch rpkg packages.queue.v1 ${approval} --as bob`)).toMatch(/patched$/);
    expect(await kubectl.ok('get rpkg packages.queue.v1 -o jsonpath={.status.publishedBy}')).toBe('bob');
  });

  test('shows a freeze wherever it lists revisions or moves one, and who started it', async () => {
    const freeze = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Freeze', metadata: { name: 'stop' } };
    const input = JSON.stringify({ ...freeze, spec: { reason: 'core repair', startedBy: 'mallory' } });
    await kubectl.ok('create -f -', { input: revision('late', 'v1', { type: 'init', init: {} }) });
    expect(await kubectl.ok('apply -f -', { input })).toMatch(/created$/);
    expect(await kubectl.ok('apply -f -', { input: input.replace('core repair', 'repair') })).toMatch(/configured$/);
    expect(await kubectl.ok('get freeze stop -o jsonpath={.spec.reason},{.spec.startedBy}')).toBe('repair,admin');
    const warning =
      /^Warning: FROZEN: namespace default is frozen by Freeze default\/stop since .* by admin until it is ended \(repair\)\n$/;
    for (const command of [
      'get rpkg',
      'get rpkg packages.late.v1',
      'get rpkg -A',
      `patch rpkg packages.late.v1 ${propose}`,
    ])
      expect((await kubectl.run(command)).stderr, command).toMatch(warning);
    expect((await kubectl.run(`patch rpkg packages.late.v1 ${approval}`)).stderr).toMatch(
      /^Warning: FROZEN: .*\nError/,
    );
    // Programs read objects; neither do other kinds have it.
    for (const command of ['get rpkg -o json', 'get repositories'])
      expect((await kubectl.run(command)).stderr).toBe('');
    const own = await sluice(['rpkg', 'reject', 'packages.late.v1', '--data', join(folder, 'data')]);
    expect(own.stderr).toMatch(/^FROZEN: namespace default [^\n]*\n$/);
    await kubectl.ok('delete freeze stop');
    await expect.poll(async () => (await kubectl.run('get rpkg')).stderr).toBe('');
  });

  test("serves users' kinds", async () => {
    expect(await kubectl.ok('apply -f -', { input: JSON.stringify(site) })).toMatch(/created$/);
    expect(await kubectl.ok('wait --for=condition=Established crd/sites.example.org')).toMatch(/condition met$/);
    const berlin = (city: string, more = {}) =>
      JSON.stringify({ apiVersion: 'example.org/v1', kind: 'Site', metadata: { name: 'a' }, spec: { city, ...more } });
    expect(await kubectl.fails('create -f -', { input: berlin('Atlantis') })).toContain('there is no Atlantis');
    expect(await kubectl.fails('create -f -', { input: berlin('Bonn', { x: 1 }) })).toContain('unknown field "spec.x"');
    const loose = await kubectl.run('create --validate=warn -f -', { input: berlin('Bonn', { x: 1 }) });
    expect(loose).toMatchObject({ code: 0, stderr: 'Warning: unknown field "spec.x"\n' });
    expect(await kubectl.ok('get st')).toMatch(/^NAME +CITY\na +Bonn$/);
    expect(await kubectl.ok('explain site.spec.city')).toContain('FIELD: city <string>');
    expect(await kubectl.ok('delete crd sites.example.org')).toMatch(/deleted$/);
    expect(await kubectl.fails('get --raw /apis/example.org/v1/sites')).toContain('NotFound');
  });
});
