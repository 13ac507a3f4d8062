// A worker in Go: plain SQL on the jobs table, no library of ours. It does what jobservice/worker.py does.
//
//	DATABASE_URL=postgresql://worker@/app go run . worker-go-1
//
// Each worker needs a name of its own. SIGTERM puts back the job it holds. When the database goes
// away, the worker waits for it and then writes what it could not.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	claim = `SELECT id::text, action, payload FROM jobs WHERE status = 'queued'
ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED`
	start = `UPDATE jobs SET status = 'running', worker = $1 WHERE id = $2::uuid`
	// By name too: a job that was put back and is somebody else's by now is not ours to end.
	done    = `UPDATE jobs SET status = 'done', result = $3 WHERE id = $2::uuid AND worker = $1`
	failed  = `UPDATE jobs SET status = 'failed', error = $3 WHERE id = $2::uuid AND worker = $1`
	putBack = `UPDATE jobs SET status = 'queued', worker = NULL, started_at = NULL
WHERE id = $2::uuid AND worker = $1 AND status = 'running'`

	final    = "JW001" // the guard's SQLSTATE: the job is final already, such as after a rescue
	idle     = 250 * time.Millisecond
	retry    = 500 * time.Millisecond
	parting  = 10 * time.Second // for the last write after SIGTERM
	longestS = 3600.0
)

type job struct {
	id, action string
	payload    map[string]any
}

// jobFailed says why a job cannot be done. Alerts are routed by its code.
type jobFailed struct{ code, message, field string }

func (f jobFailed) Error() string { return f.message }

type worker struct {
	url, name string
	conn      *pgx.Conn
}

func main() {
	log.SetOutput(os.Stderr)
	if len(os.Args) != 2 {
		log.Fatal("usage: worker NAME")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	w := &worker{url: os.Getenv("DATABASE_URL"), name: os.Args[1]}
	for ctx.Err() == nil {
		found, err := w.claim(ctx)
		switch {
		case err != nil:
			w.lost(ctx, err)
		case found == nil:
			pause(ctx, idle)
		default:
			w.do(ctx, *found)
		}
	}
}

// claim takes the oldest job that nobody else is taking; nil when there is none.
func (w *worker) claim(ctx context.Context) (*job, error) {
	conn, err := w.connected(ctx)
	if err != nil {
		return nil, err
	}
	// A claim that has begun is not broken off: the job might be ours without our knowing.
	ctx = context.WithoutCancel(ctx)
	var found job
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var payload []byte
		if err := tx.QueryRow(ctx, claim).Scan(&found.id, &found.action, &payload); err != nil {
			return err
		}
		// What is no object is an empty one: the action then says which field is missing.
		_ = json.Unmarshal(payload, &found.payload)
		_, err := tx.Exec(ctx, start, w.name, found.id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	log.Printf("running %s %s", found.action, found.id)
	return &found, nil
}

// do works and writes how it ended.
func (w *worker) do(ctx context.Context, j job) {
	result, err := act(ctx, j)
	var why jobFailed
	switch {
	case err == nil:
		w.write(ctx, j.id, done, result)
	case errors.As(err, &why):
		document := map[string]any{"code": why.code, "message": why.message}
		if why.field != "" {
			document["field"] = why.field
		}
		w.write(ctx, j.id, failed, document)
	default: // told to stop
		w.write(ctx, j.id, putBack, nil)
	}
}

func act(ctx context.Context, j job) (map[string]any, error) {
	switch j.action {
	case "resume_rewrite":
		text, err := textOf(j, "text")
		if err != nil {
			return nil, err
		}
		return map[string]any{"text": strings.TrimSpace(text)}, think(ctx, j)
	case "ai_chat":
		message, err := textOf(j, "message")
		if err != nil {
			return nil, err
		}
		reply := fmt.Sprintf("You said %d words. What else?", len(strings.Fields(message)))
		return map[string]any{"reply": reply}, think(ctx, j)
	case "pdf_build":
		title, err := textOf(j, "title")
		if err != nil {
			return nil, err
		}
		text, err := textOf(j, "text")
		if err != nil {
			return nil, err
		}
		pdf := pdfOf(title, text)
		coded := base64.StdEncoding.EncodeToString(pdf)
		return map[string]any{"type": "application/pdf", "bytes": len(pdf), "base64": coded}, think(ctx, j)
	}
	return nil, jobFailed{"internal_error", "no action is called " + j.action, ""}
}

func textOf(j job, field string) (string, error) {
	if text, ok := j.payload[field].(string); ok && strings.TrimSpace(text) != "" {
		return text, nil
	}
	return "", jobFailed{"validation_failed", field + " must be a text", field}
}

// pdfOf builds one page by hand: PDF is text, and a stand-in needs no library (ISO 32000-1, 7.5).
func pdfOf(title, text string) []byte {
	var page strings.Builder
	page.WriteString("BT /F1 12 Tf 14 TL 72 770 Td\n")
	for _, line := range append([]string{title, ""}, strings.Split(text, "\n")...) {
		fmt.Fprintf(&page, "(%s) '\n", escaped(line))
	}
	page.WriteString("ET")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R" +
			" /Resources << /Font << /F1 4 0 R >> >> >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", page.Len(), page.String()),
	}
	pdf := []byte("%PDF-1.4\n")
	places := ""
	for n, object := range objects {
		places += fmt.Sprintf("%010d 00000 n \n", len(pdf))
		pdf = fmt.Appendf(pdf, "%d 0 obj\n%s\nendobj\n", n+1, object)
	}
	size := len(objects) + 1
	return fmt.Appendf(pdf, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n",
		size, places, size, len(pdf))
}

// escaped writes a text as the bytes of a PDF string; what Latin-1 lacks becomes a question mark.
func escaped(text string) string {
	var out []byte
	for _, r := range text {
		switch {
		case r == '(' || r == ')' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < 32 || r > 255:
			out = append(out, '?')
		default:
			out = append(out, byte(r))
		}
	}
	return string(out)
}

// think stands in for a language model; ctx ends it.
func think(ctx context.Context, j job) error {
	seconds := 0.1
	if given, ok := j.payload["seconds"]; ok {
		number, ok := given.(float64)
		if !ok || number < 0 || number > longestS {
			return jobFailed{"validation_failed", "seconds must be a number from 0 to 3600", "seconds"}
		}
		seconds = number
	}
	return pause(ctx, time.Duration(seconds*float64(time.Second)))
}

// write ends a job. The same end twice does no harm; a later one than a rescue is lost. It is not
// broken off by SIGTERM, but then it does not wait for ever for a database that is away.
func (w *worker) write(ctx context.Context, id, query string, document map[string]any) {
	args := []any{w.name, id}
	if document != nil {
		args = append(args, document)
	}
	for {
		// A connection from before a restart of the database says nothing of today.
		isOld := w.conn != nil
		count, err := w.exec(query, args)
		var refused *pgconn.PgError
		switch {
		case err == nil && count > 0:
			log.Printf("ended %s", id)
			return
		case err == nil:
			log.Printf("no longer ours: %s", id)
			return
		case errors.As(err, &refused) && refused.Code == final:
			log.Printf("too late for %s: %s", id, refused.Message)
			return
		}
		w.lost(ctx, err)
		if ctx.Err() != nil && !isOld {
			log.Printf("stopped while the database was away; the watchdog takes %s", id)
			return
		}
	}
}

func (w *worker) exec(query string, args []any) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	conn, err := w.connected(ctx)
	if err != nil {
		return 0, err
	}
	tag, err := conn.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (w *worker) connected(ctx context.Context) (*pgx.Conn, error) {
	if w.conn != nil && !w.conn.IsClosed() {
		return w.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	w.conn, err = pgx.Connect(ctx, w.url)
	return w.conn, err
}

// lost forgets the connection and waits a moment. An error that waiting cannot mend ends the worker.
func (w *worker) lost(ctx context.Context, err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !strings.Contains("08 40 53 55 57", refused.Code[:2]) {
		log.Fatalf("refused: %v", err)
	}
	log.Printf("the database is away: %v", err)
	if w.conn != nil {
		_ = w.conn.Close(context.Background())
		w.conn = nil
	}
	_ = pause(ctx, retry)
}

// pause waits; it returns ctx's error when it is cut short.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
