// Tables that sort, filter and copy. They work on the rows that the report has as plain HTML.

function cellValue(cell) {
	if (!cell) return "";
	if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
	return cell.textContent.trim().toLowerCase();
}

function compareValues(a, b) {
	if (typeof a === "number" && typeof b === "number") return (Number.isNaN(a) ? -Infinity : a) - (Number.isNaN(b) ? -Infinity : b);
	return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}

function tableCsv(table) {
	const lines = [];
	for (const row of table.rows) {
		if (row.hidden) continue;
		const fields = [];
		for (const cell of row.cells) {
			if (cell.classList.contains("share")) continue;
			const name = cell.querySelector("code");
			fields.push(csvField(cell.dataset.v !== undefined ? cell.dataset.v : name ? (name.title || name.textContent) + (cell.querySelector(".at") ? " " + (cell.querySelector(".at").title || cell.querySelector(".at").textContent) : "") : cell.textContent));
		}
		lines.push(fields.join(","));
	}
	return lines.join("\n") + "\n";
}

async function copyText(text, button) {
	const area = element("textarea", { value: text, className: "away" });
	let done = false;
	try {
		await navigator.clipboard.writeText(text);
		done = true;
	} catch (error) {
		document.body.append(area);
		area.select();
		done = document.execCommand("copy");
		area.remove();
	}
	say(done ? "copied" : "copying was refused");
	if (button) {
		const label = button.textContent;
		button.textContent = done ? "Copied" : "Refused";
		setTimeout(() => { button.textContent = label; }, 1200);
	}
}

function sortTable(table, column, down) {
	const body = table.tBodies[0], rows = [...body.rows];
	rows.sort((x, y) => (down ? -1 : 1) * compareValues(cellValue(x.cells[column]), cellValue(y.cells[column])));
	body.append(...rows);
	[...table.tHead.rows[0].cells].forEach((head, i) => head.setAttribute("aria-sort", i === column ? (down ? "descending" : "ascending") : "none"));
}

function makeSortable(table) {
	[...table.tHead.rows[0].cells].forEach((head, column) => {
		if (head.classList.contains("share")) return;
		const button = element("button", { type: "button", className: "sort", title: (head.querySelector("abbr") || {}).title || "" });
		button.append(head.textContent);
		head.replaceChildren(button);
		button.addEventListener("click", () => {
			const numeric = head.classList.contains("n"), now = head.getAttribute("aria-sort");
			sortTable(table, column, now === "descending" ? false : now === "ascending" ? true : numeric);
		});
	});
}

function filterTable(table, text) {
	const pattern = searchPattern(text);
	let shown = 0;
	for (const row of table.tBodies[0].rows) {
		row.hidden = Boolean(pattern) && !pattern.test(row.textContent);
		shown += !row.hidden;
	}
	return shown;
}

function enhanceTable(table) {
	const region = table.closest(".scroll"), label = region.getAttribute("aria-label") || "table";
	const filter = element("input", { type: "search", placeholder: "filter (regex)", className: "filter" }), copy = element("button", { type: "button", className: "quiet" }, "Copy CSV"), count = element("span", { className: "soft small" });
	filter.setAttribute("aria-label", "Filter " + label);
	filter.addEventListener("input", () => {
		const shown = filterTable(table, filter.value);
		count.textContent = filter.value ? shown + " of " + table.tBodies[0].rows.length : "";
	});
	copy.addEventListener("click", () => copyText(tableCsv(table), copy));
	makeSortable(table);
	region.before(element("div", { className: "tools" }, filter, count, copy));
}
