/** Packages of the two forms that Porch's own load tests use: many functions, and many bytes. */

const DEPLOYMENTS = 30;

/** A three-function pipeline over 30 Deployments and about 550 KB of YAML. */
export function largePackage(): Map<string, string> {
  const files = new Map([
    [
      'Kptfile',
      kptfile([
        '{image: set-namespace:v0.4.1, configMap: {namespace: prod}}',
        '{image: set-labels:v0.2.0, configMap: {tier: web}}',
        '{image: set-image:v0.1.1, configMap: {name: registry.example.com/web, newTag: v2}}',
      ]),
    ],
  ]);
  for (let index = 0; index < DEPLOYMENTS; index += 1) {
    files.set(`deployment-${index}.yaml`, deployment(`web-${index}`));
    files.set(`config-${index}.yaml`, configMap(`web-${index}`, 250));
  }
  return files;
}

/** Fifteen functions over ten Deployments. */
export function complexPackage(): Map<string, string> {
  const entries = [
    '{image: set-namespace:v0.4.1, configMap: {namespace: prod}}',
    '{image: ensure-name-substring:v0.2.0, configMap: {prepend: shop-}}',
    '{image: set-image:v0.1.1, configMap: {name: registry.example.com/web, newTag: v2}}',
    '{image: apply-setters:v0.2.0, configMap: {replicas: "5"}}',
    '{image: search-replace:v0.2.0, configMap: {by-value: debug, put-value: info}}',
    ...['tier', 'team', 'stage', 'site', 'zone'].map((key) => `{image: set-labels:v0.2.0, configMap: {${key}: a}}`),
    ...['owner', 'ticket', 'budget', 'review', 'source'].map(
      (key) => `{image: set-annotations:v0.1.4, configMap: {example.com/${key}: a}}`,
    ),
  ];
  const files = new Map([['Kptfile', kptfile(entries)]]);
  for (let index = 0; index < 10; index += 1) files.set(`deployment-${index}.yaml`, deployment(`web-${index}`));
  return files;
}

function kptfile(entries: readonly string[]): string {
  const list = entries.map((entry) => `    - ${entry}\n`).join('');
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: synthetic\npipeline:\n  mutators:\n${list}`;
}

function deployment(name: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name} # the name of the service
  namespace: example
  labels:
    app: ${name}
spec:
  replicas: 3 # kpt-set: \${replicas}
  selector:
    matchLabels:
      app: ${name}
  template:
    metadata:
      labels:
        app: ${name}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:v1
          args: ["--log", "debug"]
          ports:
            - containerPort: 8080
          resources:
            requests: { cpu: 100m, memory: 128Mi }
            limits: { cpu: "1", memory: 1Gi }
          readinessProbe:
            httpGet:
              path: /ready
              port: 8080
`;
}

function configMap(name: string, entries: number): string {
  const data = Array.from({ length: entries }, (_, index) => `  key-${index}: a value that is ${'long '.repeat(9)}\n`);
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n${data.join('')}`;
}
