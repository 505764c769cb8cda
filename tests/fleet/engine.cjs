// engine.cjs PORT DIRECTORY: today's ClickHouse as a library (chdb), behind an HTTP port like a server's. One query at a time.
const { createServer } = require("node:http");
const { Session } = require("chdb");

const [port, directory] = process.argv.slice(2);
const session = new Session(directory);

function answer(url, body) {
	const parameters = new URL(url, "http://x").searchParams;
	const query = parameters.has("query") ? parameters.get("query") + "\n" + body : body;
	session.query(`USE ${parameters.get("database")}`);
	for (const [name, value] of parameters)
		if (!["query", "database", "wait_end_of_query"].includes(name))
			session.query(`SET ${name} = '${value}'`);
	return session.query(query, "TabSeparated");
}

createServer((request, response) => {
	const pieces = [];
	request.on("data", (piece) => pieces.push(piece));
	request.on("end", () => {
		try {
			response.end(answer(request.url, Buffer.concat(pieces).toString()));
		} catch (error) {
			response.statusCode = 500;
			response.end(error.message);
		}
	});
}).listen(Number(port), "127.0.0.1");
