import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answers, type Front, freePort, isThere, startOn, stopProcess } from "./front.ts";

/** The yardstick that others' figures are given by: nginx from the distribution, one process, set up to pass events on at once. */
export const nginx: Front = {
  name: "nginx",
  missing: () => (find() === undefined ? "nginx is not here (Debian: apt-get install nginx-light)" : null),
  async start(engine, cores) {
    const folder = mkdtempSync(join(tmpdir(), "guidevane-nginx-"));
    const port = await freePort();
    const file = join(folder, "nginx.conf");
    writeFileSync(file, configuration(folder, port, engine));
    const child = startOn(cores?.front, [find()!, "-c", file, "-p", folder, "-e", "stderr"]);
    const address = `127.0.0.1:${port}`;
    await answers(address, child);
    return {
      address,
      pid: child.pid!,
      helpers: [],
      async stop() {
        await stopProcess(child);
        rmSync(folder, { recursive: true });
      },
    };
  },
};

// Debian keeps it where a user's PATH does not look.
const find = (): string | undefined => ["nginx", "/usr/sbin/nginx"].find((path) => isThere(path, ["-v"]));

function configuration(folder: string, port: number, engine: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(" ");
  return `
daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr error;
worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http {
  access_log off;
  ${temporary}
  client_body_buffer_size 64k;
  keepalive_requests 1000000000;
  upstream engine {
    server ${engine};
    keepalive 1024;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 120s;
    }
  }
}
`;
}
